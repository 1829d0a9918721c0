//! The grammar of expressions (`exprparse.y`), by precedence climbing.

use super::fault::Fault;
use super::token::{Lexed, Token, token};
use crate::error::Problem;
use crate::expression::{
    Arity, Expression, MOST_ARGUMENTS, MOST_LEVELS, MOST_OPERATIONS, Node, Operator, function,
};
use crate::value::Value;
use crate::variables::Names;

/// Precedence of operators: the order of exprparse.y's precedences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Unary,
}

/// Reads the expression that is the rest of a meta command. Returns also the offset after the
/// command.
pub(super) fn read(text: &str, at: usize, names: &mut Names) -> Result<(Expression, usize), Fault> {
    let mut parser = Parser { text, next: token(text, at)?, names, operations: 0, levels: 0 };
    let node = parser.operation(Level::Or)?;
    match parser.next.token {
        Token::EndOfCommand => Ok((Expression(node), parser.next.end)),
        _ => Err(parser.next.fault(Problem::Syntax)),
    }
}

struct Parser<'a, 'n> {
    text: &'a str,
    next: Lexed<'a>,
    names: &'n mut Names,
    operations: usize,
    levels: usize,
}

impl Parser<'_, '_> {
    fn advance(&mut self) -> Result<(), Fault> {
        self.next = token(self.text, self.next.end)?;
        Ok(())
    }

    fn expect(&mut self, expected: Token<'_>) -> Result<(), Fault> {
        if self.next.token != expected {
            return Err(self.next.fault(Problem::Syntax));
        }
        self.advance()
    }

    /// Skips the next token if it is this one.
    fn skip(&mut self, token: Token<'_>) -> Result<bool, Fault> {
        let found = self.next.token == token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Counts one more operation.
    fn grow(&mut self) -> Result<(), Fault> {
        self.operations += 1;
        if self.operations > MOST_OPERATIONS { Err(self.next.fault(Problem::TooLong)) } else { Ok(()) }
    }

    /// An operand with the following operators that bind at least as tightly as `least`.
    fn operation(&mut self, least: Level) -> Result<Node, Fault> {
        self.levels += 1;
        if self.levels > MOST_LEVELS {
            return Err(self.next.fault(Problem::TooLong));
        }
        let node = self.operators(least)?;
        self.levels -= 1;
        Ok(node)
    }

    fn operators(&mut self, least: Level) -> Result<Node, Fault> {
        let mut left = self.operand()?;
        let mut compared = false;
        loop {
            let operator = self.next.token;
            let Some(level) = level(operator).filter(|level| *level >= least) else {
                return Ok(left);
            };
            // a < b < c is a syntax error.
            if level == Level::Comparison && compared {
                return Err(self.next.fault(Problem::Syntax));
            }
            compared = level == Level::Comparison;
            self.grow()?;
            self.advance()?;
            left = match operator {
                Token::Or => Node::Or(Box::new([left, self.operation(Level::And)?])),
                Token::And => Node::And(Box::new([left, self.operation(Level::Is)?])),
                Token::Is => self.is(left)?,
                Token::IsNull => is(left, Value::Null),
                Token::NotNull => Node::Not(Box::new(is(left, Value::Null))),
                _ => binary(operator, left, self.operation(tighter(level))?),
            };
        }
    }

    /// Parses the part after `IS`.
    fn is(&mut self, operand: Node) -> Result<Node, Fault> {
        let negated = self.skip(Token::Not)?;
        let expected = match self.next.token {
            Token::Null => Value::Null,
            Token::True => Value::Boolean(true),
            Token::False => Value::Boolean(false),
            _ => return Err(self.next.fault(Problem::Syntax)),
        };
        self.advance()?;
        let node = is(operand, expected);
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    fn operand(&mut self) -> Result<Node, Fault> {
        let lexed = self.next;
        let constant = match lexed.token {
            Token::Null => Value::Null,
            Token::True => Value::Boolean(true),
            Token::False => Value::Boolean(false),
            Token::Integer(value) => Value::Integer(value),
            Token::Double(value) => Value::Double(value),
            Token::Variable(name) => {
                self.advance()?;
                return Ok(Node::Variable(self.names.intern(name)));
            }
            _ => return self.compound(lexed),
        };
        self.advance()?;
        Ok(Node::Constant(constant))
    }

    /// An operand that itself has operands.
    fn compound(&mut self, lexed: Lexed<'_>) -> Result<Node, Fault> {
        self.grow()?;
        if let Token::Function(name) = lexed.token {
            return self.call(lexed, name);
        }
        if !matches!(
            lexed.token,
            Token::Open | Token::Plus | Token::Minus | Token::BitNot | Token::Not | Token::Case
        ) {
            return Err(lexed.fault(Problem::Syntax));
        }
        self.advance()?;
        match lexed.token {
            Token::Open => {
                let node = self.operation(Level::Or)?;
                self.expect(Token::Close)?;
                Ok(node)
            }
            Token::Plus => self.operation(Level::Unary),
            Token::Minus if self.skip(Token::GreatestIntegerAndOne)? => {
                Ok(Node::Constant(Value::Integer(i64::MIN)))
            }
            Token::Minus => Ok(binary(Token::Minus, integer(0), self.operation(Level::Unary)?)),
            Token::BitNot => Ok(binary(Token::BitXor, integer(-1), self.operation(Level::Sum)?)),
            Token::Not => Ok(Node::Not(Box::new(self.operation(Level::Is)?))),
            _ => self.case(),
        }
    }

    /// Parses the part after `CASE`.
    fn case(&mut self) -> Result<Node, Fault> {
        let mut branches = Vec::new();
        self.expect(Token::When)?;
        loop {
            let condition = self.operation(Level::Or)?;
            self.expect(Token::Then)?;
            branches.push([condition, self.operation(Level::Or)?]);
            if !self.skip(Token::When)? {
                break;
            }
        }
        let otherwise =
            if self.skip(Token::Else)? { self.operation(Level::Or)? } else { Node::Constant(Value::Null) };
        self.expect(Token::End)?;
        Ok(Node::Case(branches.into(), Box::new(otherwise)))
    }

    fn call(&mut self, lexed: Lexed<'_>, name: &str) -> Result<Node, Fault> {
        let unknown = || lexed.fault(Problem::FunctionName(name.to_owned()));
        let (name, function, arity) = function(name).ok_or_else(unknown)?;
        self.advance()?;
        self.expect(Token::Open)?;
        let mut arguments = Vec::new();
        if self.next.token != Token::Close {
            // pgbench's grammar lets a list begin with a comma.
            if self.next.token != Token::Comma {
                arguments.push(self.operation(Level::Or)?);
            }
            while self.skip(Token::Comma)? {
                arguments.push(self.operation(Level::Or)?);
            }
        }
        if self.next.token != Token::Close {
            return Err(self.next.fault(Problem::Syntax));
        }
        self.check(name, arity, arguments.len())?;
        if arity == Arity::Seeded(arguments.len()) {
            arguments.push(Node::Variable(self.names.intern("default_seed")));
        }
        self.advance()?;
        Ok(Node::Call(function, arguments.into()))
    }

    fn check(&self, name: &'static str, arity: Arity, count: usize) -> Result<(), Fault> {
        let problem = match arity {
            Arity::Exactly(expected) if count == expected => return Ok(()),
            Arity::Seeded(expected) if count == expected || count == expected + 1 => return Ok(()),
            Arity::Exactly(_) | Arity::Seeded(_) => Problem::ArgumentCount(name),
            Arity::Some if count == 0 => Problem::NoArguments(name),
            Arity::Some if count > MOST_ARGUMENTS => Problem::TooManyFunctionArguments,
            Arity::Some => return Ok(()),
        };
        Err(self.next.fault(problem))
    }
}

/// The precedence of an operator between operands, or after one.
fn level(token: Token<'_>) -> Option<Level> {
    Some(match token {
        Token::Or => Level::Or,
        Token::And => Level::And,
        Token::Is | Token::IsNull | Token::NotNull => Level::Is,
        Token::Equal
        | Token::Unequal
        | Token::Less
        | Token::LessOrEqual
        | Token::Greater
        | Token::GreaterOrEqual => Level::Comparison,
        Token::BitOr | Token::BitAnd | Token::BitXor | Token::ShiftLeft | Token::ShiftRight => Level::Bits,
        Token::Plus | Token::Minus => Level::Sum,
        Token::Star | Token::Slash | Token::Percent => Level::Product,
        _ => return None,
    })
}

/// The level of the right operand of a left-associative operator.
fn tighter(level: Level) -> Level {
    match level {
        Level::Or => Level::And,
        Level::And => Level::Is,
        Level::Is => Level::Comparison,
        Level::Comparison => Level::Bits,
        Level::Bits => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product | Level::Unary => Level::Unary,
    }
}

fn binary(token: Token<'_>, left: Node, right: Node) -> Node {
    let operator = match token {
        Token::Plus => Operator::Add,
        Token::Minus => Operator::Subtract,
        Token::Star => Operator::Multiply,
        Token::Slash => Operator::Divide,
        Token::Percent => Operator::Modulo,
        Token::BitOr => Operator::BitOr,
        Token::BitAnd => Operator::BitAnd,
        Token::BitXor => Operator::BitXor,
        Token::ShiftLeft => Operator::ShiftLeft,
        Token::ShiftRight => Operator::ShiftRight,
        Token::Equal => Operator::Equal,
        Token::Unequal => Operator::Unequal,
        Token::Less => Operator::Less,
        Token::LessOrEqual => Operator::LessOrEqual,
        // The right operand is then evaluated first, as in pgbench.
        Token::Greater => return Node::Binary(Operator::Less, Box::new([right, left])),
        Token::GreaterOrEqual => return Node::Binary(Operator::LessOrEqual, Box::new([right, left])),
        _ => unreachable!("no operator between two operands: {token:?}"),
    };
    Node::Binary(operator, Box::new([left, right]))
}

fn is(operand: Node, expected: Value) -> Node {
    Node::Is(Box::new(operand), expected)
}

fn integer(value: i64) -> Node {
    Node::Constant(Value::Integer(value))
}
