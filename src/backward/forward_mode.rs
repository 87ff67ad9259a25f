//! Gives forward mode access to the scheduler: the tangents of most operators come from two reverse passes.

use super::{Request, run};
use crate::base::Result;
use crate::tensor::levels::tangents::{self, DualLevel};
use crate::tensor::{Edge, Tensor};

/// Enters a dual level; [`tangents::exit`] ends it.
pub fn enter() -> DualLevel {
    tangents::enter(reverse)
}

fn reverse(roots: &[(Tensor, Tensor)], inputs: &[Tensor], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
    let root = |(output, grad): &(Tensor, Tensor)| Some((output.edge()?, grad.clone()));
    let roots: Vec<(Edge, Tensor)> = roots.iter().filter_map(root).collect();
    let edges: Vec<Edge> = inputs.iter().filter_map(Tensor::edge).collect();
    run(Request {
        roots: &roots,
        retain_graph: true,
        create_graph,
        inputs: Some(&edges),
        accumulate: false,
        poll: &mut || Ok(()),
    })
}
