//! docs/graph.svg, which is drawn from the node table.
//!
//! `PARSHALL_GOLDEN=write cargo test -p router picture` draws it anew.

use std::path::Path;

use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};

use crate::golden::writes;
use crate::harness::Lab;

/// Draws a graph given in Graphviz's language.
fn draw(dot: &str) -> String {
    let parsed = DotParser::new(dot).process().expect("our own text");
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&parsed);
    let mut picture = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut picture);
    picture.finalize()
}

#[test]
fn picture() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/graph.svg");
    let graph = router::show::graph(&Lab::new().router);
    let drawn = draw(&graph.dot());
    if writes() {
        std::fs::write(&path, &drawn).expect("is written");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/graph.svg");
    assert!(
        kept == drawn,
        "docs/graph.svg is not what the node table says: see {}",
        file!()
    );
    for node in &graph.nodes {
        for stage in &node.stages {
            assert!(kept.contains(stage), "{stage}");
        }
    }
}
