//! Scopes: the set of names of one request.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::Name;

/// A non-empty set of names, in order and without duplicates. A single name is a scope of one.
///
/// A request for a scope is granted all of it at once or waits for all of it.
///
/// ```
/// use navlocks_core::Scope;
///
/// let accounts = Scope::from(["to", "from", "to"]);
/// assert_eq!(accounts.to_string(), "{from, to}");
/// assert!(accounts.intersects(&Scope::from("to")));
/// assert!(Scope::new(Vec::<&str>::new()).is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    One(Name),
    Many(Arc<[Name]>),
}

impl Scope {
    /// Makes the set of these names.
    ///
    /// # Errors
    ///
    /// [`EmptyScope`] when there is none.
    pub fn new<N: Into<Name>>(names: impl IntoIterator<Item = N>) -> Result<Self, EmptyScope> {
        let names: Vec<Name> = names.into_iter().map(Into::into).collect();
        if names.is_empty() { Err(EmptyScope) } else { Ok(Self::of(names)) }
    }

    /// Makes the set of `names`, of which there is at least one.
    fn of(mut names: Vec<Name>) -> Self {
        names.sort_unstable();
        names.dedup();
        match names.len() {
            1 => Self(Repr::One(names.remove(0))),
            _ => Self(Repr::Many(names.into())),
        }
    }

    /// Makes the scope of a first name and others, which are in order and differ.
    pub(crate) fn of_sorted<'a>(first: &'a Name, rest: impl Iterator<Item = &'a Name>) -> Self {
        let mut names = core::iter::once(first).chain(rest).cloned().peekable();
        match (names.next(), names.peek()) {
            (Some(name), None) => Self(Repr::One(name)),
            (name, _) => Self(Repr::Many(name.into_iter().chain(names).collect())),
        }
    }

    /// Returns the names in order of their code units; never empty.
    pub fn names(&self) -> &[Name] {
        match &self.0 {
            Repr::One(name) => core::slice::from_ref(name),
            Repr::Many(names) => names,
        }
    }

    /// Returns true if the scope has this name.
    pub fn contains(&self, name: &Name) -> bool {
        self.names().binary_search(name).is_ok()
    }

    /// Returns true if the two scopes have a name in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.names().iter().any(|name| other.contains(name))
    }
}

macro_rules! scope_of_one {
    ($($name:ty),*) => {$(
        impl From<$name> for Scope {
            #[inline]
            fn from(name: $name) -> Self {
                Self(Repr::One(name.into()))
            }
        }
    )*};
}

scope_of_one!(Name, &Name, &str, String, &String);

/// Makes the set of the names in an array; an empty array does not compile.
impl<N: Into<Name>, const COUNT: usize> From<[N; COUNT]> for Scope {
    fn from(names: [N; COUNT]) -> Self {
        const { assert!(COUNT > 0, "a scope has at least one name") };
        Self::of(names.into_iter().map(Into::into).collect())
    }
}

impl<N: Into<Name>> TryFrom<Vec<N>> for Scope {
    type Error = EmptyScope;

    fn try_from(names: Vec<N>) -> Result<Self, EmptyScope> {
        Self::new(names)
    }
}

impl From<&Self> for Scope {
    fn from(scope: &Self) -> Self {
        scope.clone()
    }
}

/// Writes a single name as it is, and several as `{a, b}`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repr::Many(names) = &self.0 else {
            return self.names()[0].fmt(f);
        };
        f.write_str("{")?;
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            name.fmt(f)?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The error of a scope without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyScope;

impl fmt::Display for EmptyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scope is empty: a lock request needs at least one name")
    }
}

impl core::error::Error for EmptyScope {}
