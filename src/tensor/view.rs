//! Views know their base, so that a write through one of them rewrites the base's history, and a write to the base
//! (or through a sister) renews the history of the others.

use super::{Body, Edge, LATE, Tensor, lock, mode};
use crate::base::Layout;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a tensor keeps when it is a view.
pub struct View {
    /// The tensor that owns the history; never a view itself.
    pub base: Tensor,
    /// How the view was made, which decides whether it may be written in place.
    pub made: Viewing,
    rules: &'static ViewRules,
    seen: AtomicU32,
}

/// The circumstances in which a view was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Viewing {
    Plain,
    /// Under `no_grad`, of a base that wants gradients.
    NoGrad,
    /// One of several outputs of one call (`unbind`, `split`).
    Multi,
}

/// How histories of views are rewritten; the view operators know (they are a room above this one).
pub struct ViewRules {
    /// The history of a view with this layout, given its base's present one.
    pub regenerate: fn(base: &Tensor, layout: &Layout) -> Option<Edge>,
    /// The history of a base after `value` was written into the part with this layout.
    pub scatter: fn(base: &Tensor, layout: &Layout, value: Edge) -> Edge,
}

impl Tensor {
    /// A view of `of` with the given body; `edge` is the view operator's own node.
    pub fn view_of(
        of: &Tensor,
        body: Body,
        edge: Option<Edge>,
        made: Viewing,
        rules: &'static ViewRules,
    ) -> Tensor {
        let (base, made) = match &of.0.view {
            Some(view) => (view.base.clone(), if made == Viewing::Plain { view.made } else { made }),
            None => (of.clone(), made),
        };
        let made = match made {
            Viewing::Plain if !mode::grad_enabled() && base.requires_grad() => Viewing::NoGrad,
            other => other,
        };
        let seen = AtomicU32::new(base.rewrites());
        Tensor::make(body, edge, 0, Some(View { base, made, rules, seen }))
    }

    pub fn as_view(&self) -> Option<&View> {
        self.0.view.as_ref()
    }

    pub(super) fn rewrites(&self) -> u32 {
        self.0.extra.get().map_or(0, |extra| extra.rewrites.load(Ordering::Acquire))
    }

    /// Renews this view's history when its base's was rewritten since.
    #[inline]
    pub(super) fn refresh_view(&self, view: &View) {
        let now = view.base.rewrites();
        if now != view.seen.load(Ordering::Acquire) && view.made != Viewing::NoGrad {
            view.seen.store(now, Ordering::Release);
            let edge = (view.rules.regenerate)(&view.base, &self.body().layout);
            lock(&self.extra().late).edge = Some(edge);
            self.0.flags.fetch_or(LATE, Ordering::AcqRel);
        }
    }
}

impl View {
    /// Writes `value`, the node of an in-place operator on the view with this layout, into the base's history.
    pub fn rewrite_base(&self, layout: &Layout, value: Edge) {
        let edge = (self.rules.scatter)(&self.base, layout, value);
        self.base.set_history(Some(edge));
    }
}
