//! What `show` commands print: serde structs, which the command line formats and programs read as JSON.
