//! Formats plans: the text of the tree that says the same.

use std::fmt::{self, Display, Formatter};

use crate::bind::Node;
use crate::{ast, plan};

macro_rules! display {
    ($($name:ident),+) => {
        $(impl Display for plan::$name {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                ast::$name::raise(self).fmt(f)
            }
        })+
    };
}

display!(Statement, Recall, Predicate, Pointer);
