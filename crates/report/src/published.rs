//! Published measurements that readers may know, quoted next to ours.

/// A published table: its title, where it is from, and its cells.
pub struct Published {
    /// The measurement, and its machine.
    pub title: &'static str,
    /// Publisher and date.
    pub source: &'static str,
    /// Heads of the columns; the first is that of the load test.
    pub columns: &'static [&'static str],
    /// Rows; each has as many cells as there are columns.
    pub rows: &'static [&'static [&'static str]],
}

/// The tables that the report quotes.
pub const PUBLISHED: &[Published] = &[
    Published {
        title: "Share of 10 GbE line rate in percent (both ways: of 200), 4-core Atom C3558 2.2 GHz",
        source: "ipng.ch, Netgate 6100 review, 2021",
        columns: &[
            "load test",
            "pfSense",
            "Linux",
            "VPP 1 queue",
            "VPP 2 queues",
            "VPP 3 queues",
        ],
        rows: &[
            &["one way, 1514 B", "97", "97", "97", "97", "97"],
            &["one way, imix", "61", "75", "96", "95", "95"],
            &["one way, 64 B many flows", "15", "17", "33", "66", "96"],
            &["one way, 64 B one flow", "4.4", "4.7", "33", "33", "33"],
            &["both ways, 1514 B", "192", "193", "193", "193", "194"],
            &["both ways, imix", "63", "71", "190", "190", "191"],
            &["both ways, 64 B many flows", "15", "16", "61", "63", "81"],
            &["both ways, 64 B one flow", "8.6", "9.0", "61", "61", "33"],
        ],
    },
    Published {
        title: "Single flow of 64 B packets on one core, the same machine",
        source: "ipng.ch, Netgate 6100 review, 2021",
        columns: &["", "pfSense", "Linux", "VPP"],
        rows: &[&["Mpps", "0.623", "0.643", "5.01"]],
    },
];
