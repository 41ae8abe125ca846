//! From a node of the tree to its part of a plan, and back.
//!
//! Down, the arguments of a node get the values of its parameters. Every argument is looked at, also after one with an
//! error, so that all errors are reported at once. Up, a plan gets places and arguments again: its text and its checks
//! are those of the tree.

use super::{Argument, Binder};
use crate::attributes::Thing;
use crate::span::Spanned;
use crate::value::{Arg, Duration, Id, ItemRef, Name, Passage, Time, Value, Vector};
use crate::words::{
    Channel, Direction, Edge, EscalateMode, FlawKind, Kind, Lines, Mark, MeasureKind, MergeKind, Noun, Op, Part,
    ShowTarget,
};

/// A node of the tree.
pub(crate) trait Node: Sized {
    /// Its part of a plan.
    type Plan;

    /// The plan of this node; `None` after an error.
    fn lower(&self, binder: &mut Binder<'_>) -> Option<Self::Plan>;

    /// The node that says this plan.
    fn raise(plan: &Self::Plan) -> Self;
}

impl<T: Node> Node for Spanned<T> {
    type Plan = T::Plan;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<T::Plan> {
        let around = std::mem::replace(&mut binder.span, self.span);
        let plan = self.node.lower(binder);
        binder.span = around;
        plan
    }

    fn raise(plan: &T::Plan) -> Spanned<T> {
        Spanned::from(T::raise(plan))
    }
}

impl<T: Argument> Node for Arg<T> {
    type Plan = T::Plan;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<T::Plan> {
        match self {
            Arg::Value(value) => value.lower(binder),
            Arg::Param(name) => binder.value_of::<T>(name),
        }
    }

    fn raise(plan: &T::Plan) -> Arg<T> {
        Arg::Value(T::raise(plan))
    }
}

impl<T: Node> Node for Option<T> {
    type Plan = Option<T::Plan>;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<Option<T::Plan>> {
        match self {
            Some(node) => node.lower(binder).map(Some),
            None => Some(None),
        }
    }

    fn raise(plan: &Option<T::Plan>) -> Option<T> {
        plan.as_ref().map(T::raise)
    }
}

impl<T: Node> Node for Vec<T> {
    type Plan = Vec<T::Plan>;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<Vec<T::Plan>> {
        let mut plans = Some(Vec::with_capacity(self.len()));
        for node in self {
            match (node.lower(binder), &mut plans) {
                (Some(plan), Some(plans)) => plans.push(plan),
                _ => plans = None,
            }
        }
        plans
    }

    fn raise(plan: &Vec<T::Plan>) -> Vec<T> {
        plan.iter().map(T::raise).collect()
    }
}

impl<T: Node> Node for Box<T> {
    type Plan = Box<T::Plan>;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<Box<T::Plan>> {
        T::lower(self, binder).map(Box::new)
    }

    fn raise(plan: &Box<T::Plan>) -> Box<T> {
        Box::new(T::raise(plan))
    }
}

impl<A: Node, B: Node> Node for (A, B) {
    type Plan = (A::Plan, B::Plan);

    fn lower(&self, binder: &mut Binder<'_>) -> Option<(A::Plan, B::Plan)> {
        let (first, second) = (self.0.lower(binder), self.1.lower(binder));
        Some((first?, second?))
    }

    fn raise(plan: &(A::Plan, B::Plan)) -> (A, B) {
        (A::raise(&plan.0), B::raise(&plan.1))
    }
}

impl Node for Id {
    type Plan = String;

    fn lower(&self, _: &mut Binder<'_>) -> Option<String> {
        Some(self.0.clone())
    }

    fn raise(plan: &String) -> Id {
        Id(plan.clone())
    }
}

/// Nodes that are the same in a plan.
macro_rules! leaves {
    ($($leaf:ty),+ $(,)?) => {
        $(impl Node for $leaf {
            type Plan = $leaf;

            fn lower(&self, _: &mut Binder<'_>) -> Option<$leaf> {
                Some(self.clone())
            }

            fn raise(plan: &$leaf) -> $leaf {
                plan.clone()
            }
        })+
    };
}

leaves!(bool, u64, f64, String, Duration, ItemRef, Name, Passage, Thing, Time, Value, Vector);
leaves!(Channel, Direction, Edge, EscalateMode, FlawKind, Kind, Lines, Mark, MeasureKind, MergeKind, Noun, Op, Part);
leaves!(ShowTarget);
