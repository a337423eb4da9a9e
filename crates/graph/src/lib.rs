//! The packet engine: buffers, frames, stages, edges, workers, counters, trace, snapshots, ports.
