//! Look-up structures of the fast path; they know no packet.
