//! Expressions as they are evaluated, and the functions they can call.

use crate::value::Value;
use crate::variables::Slot;

/// An expression of `\set`, `\if` or `\elif`. A client computes its value, with its own variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(pub(crate) Node);

/// An expression after parsing. Only some operators remain: `a > b` is `b < a`, `-x` is `0 - x`,
/// `~x` is `-1 # x`. So operands are evaluated in pgbench's order, and overflow as in pgbench.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Constant(Value),
    Variable(Slot),
    Binary(Operator, Box<[Node; 2]>),
    Not(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// Whether the operand is exactly this: null, true or false.
    Is(Box<Node>, Value),
    /// Conditions with their results, and the result if none is true.
    Case(Box<[[Node; 2]]>, Box<Node>),
    Call(Function, Box<[Node]>),
}

/// Operators that take two operands, and are null if one is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Modulo,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Number of arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    /// This number, and one more that is `default_seed` if it is not given.
    Seeded(usize),
    /// One or more.
    Some,
}

/// Most arguments of `least` and `greatest`, as in pgbench.
pub(crate) const MOST_ARGUMENTS: usize = 16;

/// Most operators, parentheses and functions of an expression. It limits the depth of evaluation.
pub(crate) const MOST_OPERATIONS: usize = 500;

/// Greatest depth of nesting, right operands counted. It limits the depth of parsing.
pub(crate) const MOST_LEVELS: usize = 100;

/// The function with this name (in any case) and its arity; `None` if there is no such function.
pub(crate) fn function(name: &str) -> Option<(&'static str, Function, Arity)> {
    const FUNCTIONS: [(&str, Function, Arity); 21] = [
        ("abs", Function::Abs, Arity::Exactly(1)),
        ("debug", Function::Debug, Arity::Exactly(1)),
        ("double", Function::Double, Arity::Exactly(1)),
        ("exp", Function::Exp, Arity::Exactly(1)),
        ("greatest", Function::Greatest, Arity::Some),
        ("hash", Function::HashMurmur2, Arity::Seeded(1)),
        ("hash_fnv1a", Function::HashFnv1a, Arity::Seeded(1)),
        ("hash_murmur2", Function::HashMurmur2, Arity::Seeded(1)),
        ("int", Function::Int, Arity::Exactly(1)),
        ("least", Function::Least, Arity::Some),
        ("ln", Function::Ln, Arity::Exactly(1)),
        ("mod", Function::Modulo, Arity::Exactly(2)),
        ("permute", Function::Permute, Arity::Seeded(2)),
        ("pi", Function::Pi, Arity::Exactly(0)),
        ("pow", Function::Power, Arity::Exactly(2)),
        ("power", Function::Power, Arity::Exactly(2)),
        ("random", Function::Random, Arity::Exactly(2)),
        ("random_exponential", Function::RandomExponential, Arity::Exactly(3)),
        ("random_gaussian", Function::RandomGaussian, Arity::Exactly(3)),
        ("random_zipfian", Function::RandomZipfian, Arity::Exactly(3)),
        ("sqrt", Function::Sqrt, Arity::Exactly(1)),
    ];
    FUNCTIONS.into_iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}
