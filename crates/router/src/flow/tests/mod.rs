mod key;
mod model;
mod tcp;
