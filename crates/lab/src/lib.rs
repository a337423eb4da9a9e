//! Network namespaces, processes and the head-to-head comparison.
