//! Edges: the ways out of a stage, declared as an enum by [`edges!`](crate::edges!).

/// Destination of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// To the node of this name.
    Node(&'static str),
    /// Along the [`FeatureArc`](crate::FeatureArc) of this name: to the next feature that the
    /// packet is to pass, or to its end.
    Arc(&'static str),
    /// Out of the interface that [`Desc::tx_if`](crate::Desc::tx_if) names: by its port, or first
    /// through the node that such packets pass ([`Command::Output`](crate::Command::Output)).
    Interface,
    /// Out by the port of that interface, past that node.
    Port,
    /// The packet ends here, for this reason.
    Drop(&'static str),
}

/// One way out of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Name of the variant.
    pub name: &'static str,
    /// Destination.
    pub to: To,
    /// Class of the packets that take it.
    pub class: Class,
}

/// Fate of the packets that take an edge, for readers of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// They go on: the default.
    Passed,
    /// The host gets them.
    Punted,
    /// Their sender gets an answer instead.
    Answered,
    /// Other packets carry on their contents.
    Done,
    /// They are lost: the default of `Drop`.
    Lost,
}

/// The ways out of a stage; an enum made by [`edges!`](crate::edges!).
pub trait Edges: Copy + Send + 'static {
    /// Number of edges.
    const COUNT: usize;
    /// All edges, in the order of [`Edges::index`].
    fn table() -> Vec<Edge>;
    /// Position in [`Edges::table`].
    fn index(self) -> u8;
}

/// Declares the edges of a stage: each variant, and where it leads. Errors are edges that end in
/// `Drop`, with their reason. `as` gives an edge another [`Class`] than the default:
/// ```
/// graph::edges! {
///     enum Next {
///         Forward => Interface,
///         TtlExpired => Node("icmp4-error") as Answered,
///         Malformed => Drop("header is cut off"),
///         Copied => Drop("packet was copied") as Done,
///     }
/// }
/// ```
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident => $kind:ident $(($arg:expr))? $(as $class:ident)?),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        $vis enum $name { $($(#[$vmeta])* $variant),+ }
        impl $crate::Edges for $name {
            const COUNT: usize = [$(stringify!($variant)),+].len();
            fn table() -> Vec<$crate::Edge> {
                vec![$($crate::Edge {
                    name: stringify!($variant),
                    to: $crate::To::$kind $(($arg))?,
                    class: $crate::edges!(@class $kind $($class)?),
                }),+]
            }
            #[inline(always)]
            fn index(self) -> u8 {
                self as u8
            }
        }
    };
    (@class $kind:ident $class:ident) => { $crate::Class::$class };
    (@class Drop) => { $crate::Class::Lost };
    (@class $kind:ident) => { $crate::Class::Passed };
}
