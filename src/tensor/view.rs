//! Views know their base: a write through a view changes the edge of the base, and a write to the base (or
//! through another view) changes the edges of the views.

use crate::base::{Error, Guidance, Result};
use crate::tensor::{
    Body, CreationMeta, Edge, OWN_TANGENTS, REPLACED, Tensor, VIEW, View, ViewFunc, lock, mode,
};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

impl Tensor {
    /// A view of `of` with the given body; `edge` leads to the view operator's node.
    pub fn view_of(
        of: &Tensor,
        body: Body,
        edge: Option<Edge>,
        made: CreationMeta,
        func: &'static ViewFunc,
    ) -> Tensor {
        // Views of inference tensors are not tracked.
        if body.storage.is_untracked() {
            let storage = body.storage.uncounted();
            return Tensor::with_flags(Body { storage, ..body }, None, 0, None);
        }
        let made = match made {
            CreationMeta::Plain | CreationMeta::Multi if mode::inference() => CreationMeta::Inference,
            CreationMeta::Plain | CreationMeta::Multi if !mode::grad_enabled() => CreationMeta::NoGrad,
            other => other,
        };
        let (base, made, tangent_base) = match of.as_view() {
            Some(view) => {
                let tangent_base =
                    if of.flags() & OWN_TANGENTS != 0 { Some(of.clone()) } else { view.tangent_base.clone() };
                (
                    view.base.clone(),
                    if made == CreationMeta::Plain { view.made() } else { made },
                    tangent_base,
                )
            }
            None => (of.clone(), made, None),
        };
        let seen = AtomicU32::new(body.storage.version());
        let view = View { base, made: AtomicU8::new(made as u8), func, seen, tangent_base };
        Tensor::with_flags(body, edge, VIEW, Some(view))
    }

    pub fn as_view(&self) -> Option<&View> {
        // A view that was swapped with another tensor is no view any more.
        self.0.view.as_ref().filter(|_| self.flags() & VIEW != 0)
    }

    /// Makes this view's edge again from its base's, if the storage was written since.
    #[inline]
    pub(super) fn refresh_view(&self, view: &View) {
        if !view.is_plain() {
            return;
        }
        let now = self.body().storage.version();
        let written = now != view.seen.load(Ordering::Acquire);
        if written && (view.base.requires_grad() || self.last_history().is_some()) {
            view.seen.store(now, Ordering::Release);
            let edge = (view.func.history)(&view.base, &self.body());
            let old = lock(&self.extra().replaced).edge.replace(edge.clone());
            self.0.flags.fetch_or(REPLACED, Ordering::AcqRel);
            self.keep_retaining(old, edge);
        }
    }

    /// If this is a view, keeps its current edge until the storage is written again.
    pub fn keep_view_history(&self) {
        if let Some(view) = self.as_view() {
            view.seen.store(self.version(), Ordering::Release);
        }
    }

    /// If this is a view, changes how it counts as made.
    pub fn remake_view(&self, made: CreationMeta) {
        self.keep_view_history();
        if let Some(view) = self.as_view() {
            view.made.store(made as u8, Ordering::Release);
        }
    }

    /// The base of this view, and how it was made from it.
    pub fn view_recipe(&self) -> Option<(&Tensor, ViewRecipe)> {
        let view = self.as_view()?;
        let unseen = self.version().wrapping_sub(view.seen.load(Ordering::Acquire));
        Some((&view.base, ViewRecipe { made: view.made(), func: view.func, unseen }))
    }

    /// A view of `of`, or of its base, that was made in the same way.
    pub fn view_again(of: &Tensor, body: Body, edge: Option<Edge>, recipe: &ViewRecipe) -> Tensor {
        let base = of.as_view().map_or(of, |view| &view.base).clone();
        let seen = AtomicU32::new(body.storage.version().wrapping_sub(recipe.unseen));
        let made = AtomicU8::new(recipe.made as u8);
        let view = View { base, made, func: recipe.func, seen, tangent_base: None };
        Tensor::with_flags(body, edge, VIEW, Some(view))
    }

    /// Returns an error if the storage was written since this view was made and the view cannot follow in the
    /// graph.
    #[inline]
    pub fn check_view(&self) -> Result<()> {
        match self.as_view() {
            Some(view) if !view.is_plain() => view.check(self),
            _ => Ok(()),
        }
    }
}

/// How a view was made from its base.
pub struct ViewRecipe {
    made: CreationMeta,
    func: &'static ViewFunc,
    /// The number of writes that its edge does not know.
    unseen: u32,
}

impl View {
    pub fn made(&self) -> CreationMeta {
        const ALL: [CreationMeta; 5] = [
            CreationMeta::Plain,
            CreationMeta::NoGrad,
            CreationMeta::Inference,
            CreationMeta::Multi,
            CreationMeta::Function,
        ];
        ALL[usize::from(self.made.load(Ordering::Acquire))]
    }

    #[inline]
    pub fn is_plain(&self) -> bool {
        self.made.load(Ordering::Acquire) == CreationMeta::Plain as u8
    }

    #[cold]
    fn check(&self, view: &Tensor) -> Result<()> {
        let written = view.version() != self.seen.load(Ordering::Acquire);
        if written && (view.history().is_some() || self.base.requires_grad()) {
            return Err(self.refusal(view, "its base or another view of its base has been"));
        }
        Ok(())
    }

    /// The error for writing or using this view; `what` names what was modified.
    pub fn refusal(&self, view: &Tensor, what: &str) -> Error {
        const AMBIGUOUS: &str = "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your \
            code by moving both the view and the inplace either both inside the";
        let edge = view.history();
        let maker = edge.map(|e| {
            let name = e.node.name();
            let name = name.trim_end_matches(char::is_numeric).trim_end_matches("Backward");
            format!("Output {} of {name} is a view", e.output)
        });
        let unrecorded = matches!(self.made(), CreationMeta::NoGrad | CreationMeta::Inference);
        let head = match (maker, unrecorded) {
            (Some(maker), false) => format!("{maker} and {what} modified inplace."),
            (maker, _) => {
                let who = maker.map_or("A view was".into(), |m| format!("{m} of a view which was"));
                let (then, now) = match self.made() {
                    CreationMeta::Inference => ("inference", "in normal mode"),
                    _ => ("no_grad", "with grad mode enabled"),
                };
                format!("{who} created in {then} mode and {what} modified inplace {now}.")
            }
        };
        let message = match self.made() {
            CreationMeta::Multi => format!(
                "{head} This view is the output of a function that returns multiple views. Such functions do not allow the \
                 output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
            ),
            CreationMeta::Function => format!(
                "{head} This view was created inside a custom Function (or because an input was returned as-is) and the \
                 autograd logic to handle view+inplace would override the custom backward associated with the custom \
                 Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the \
                 output of the custom Function."
            ),
            CreationMeta::Inference => format!(
                "{head} {AMBIGUOUS} inference_mode block (if you don't want the inplace to be tracked) or both outside (if \
                 you want the inplace to be tracked)."
            ),
            _ => format!(
                "{head} {AMBIGUOUS} no_grad block (if you don't want the inplace to be tracked) or both outside (if you want \
                 the inplace to be tracked)."
            ),
        };
        let (text, line) = view.describe();
        let (base, base_line) = self.base.describe();
        Guidance::new(message)
            .note("view", text, line)
            .note("of", base, base_line)
            .advice(
                "write to the base, to a clone() of the view, or use the out-of-place form of the operator",
            )
            .done()
    }

    /// Marks this view's edge as outdated, because the base got a new one. (The view may have been updated
    /// between the write and now, from the base's old edge.)
    pub fn expire(&self) {
        self.seen.store(self.base.version().wrapping_sub(1), Ordering::Release);
    }
}
