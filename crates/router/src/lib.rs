//! The router's features, one folder each, on the packet engine.
