//! The load tester: profiles, streams, pacer, sink, ramp, statistics, report.
