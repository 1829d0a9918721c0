//! Turns the expressions of generated columns into formulas, if pgrig computes the same values as
//! the server.

use rowgen::{Class, Formula, Function, Operator, Scalar};

use super::condition::{MOST_LEVELS, Token, Tokens, lex, top_level, unquoted, unwrap};

/// Reads an expression as `pg_get_expr` prints it. None if it is not understood.
///
/// The types of columns decide further whether rows can be computed: [`rowgen::TupleEncoder::with_formulas`].
pub fn formula(text: &str, columns: &[&str]) -> Option<Formula> {
    Reader { text, columns }.expression(&lex(text)?, 0)
}

struct Reader<'a> {
    text: &'a str,
    columns: &'a [&'a str],
}

impl Reader<'_> {
    fn expression(&self, tokens: Tokens<'_>, depth: u32) -> Option<Formula> {
        if depth > MOST_LEVELS {
            return None;
        }
        let tokens = unwrap(tokens);
        if let Some(at) = top_level(tokens).find(|&at| matches!(tokens[at].0, Token::Symbol(_))) {
            let Token::Symbol(symbol) = &tokens[at].0 else { return None };
            let operand = |tokens| self.expression(tokens, depth + 1).map(Box::new);
            let (left, right) = (operand(&tokens[..at])?, operand(&tokens[at + 1..])?);
            return Some(Formula::Operation { operator: operator(symbol)?, left, right });
        }
        if let Some(at) = top_level(tokens).filter(|&at| tokens[at].0 == Token::Cast).last() {
            return self.cast(&tokens[..at], &tokens[at + 1..], depth);
        }
        match tokens {
            [(Token::Literal, place)] => number(&self.text[place.clone()]).map(Formula::Constant),
            [(Token::Word { name, .. }, _)] => {
                self.columns.iter().position(|column| column == name).map(Formula::Column)
            }
            [
                (Token::Word { name, quoted: false }, _),
                (Token::Open, _),
                arguments @ ..,
                (Token::Close, _),
            ] => self.call(name, arguments, depth),
            _ => None,
        }
    }

    fn cast(&self, value: Tokens<'_>, to: Tokens<'_>, depth: u32) -> Option<Formula> {
        let (first, last) = (to.first()?, to.last()?);
        let to = match &self.text[first.1.start..last.1.end] {
            "smallint" | "integer" | "bigint" => Class::Integer,
            "numeric" => Class::Decimal,
            "text" | "character varying" => Class::Text,
            _ => return None,
        };
        if let [(Token::Literal, place)] = unwrap(value) {
            let text = unquoted(&self.text[place.clone()]);
            if to == Class::Text {
                // Escapes other than of the backslash itself are left to the server.
                let is_plain = !self.text[place.clone()].starts_with('E') && !text.contains('\\');
                return is_plain.then_some(Formula::Constant(Scalar::Text(text)));
            }
            let number = number(&text)?;
            let is_same = matches!(
                (&number, to),
                (Scalar::Integer(_), Class::Integer) | (Scalar::Decimal { .. }, Class::Decimal)
            );
            return Some(if is_same {
                Formula::Constant(number)
            } else {
                Formula::Cast { to, value: Box::new(Formula::Constant(number)) }
            });
        }
        let value = Box::new(self.expression(value, depth + 1)?);
        Some(Formula::Cast { to, value })
    }

    fn call(&self, name: &str, arguments: Tokens<'_>, depth: u32) -> Option<Formula> {
        let commas = top_level(arguments).filter(|&at| &self.text[arguments[at].1.clone()] == ",");
        let commas: Vec<usize> = commas.collect();
        let starts = std::iter::once(0).chain(commas.iter().map(|at| at + 1));
        let ends = commas.iter().copied().chain(std::iter::once(arguments.len()));
        let mut values = starts
            .zip(ends)
            .map(|(start, end)| self.expression(&arguments[start..end], depth + 1))
            .collect::<Option<Vec<Formula>>>()?;
        let function = match name {
            "COALESCE" => return Some(Formula::Coalesce(values)),
            "lower" => Function::Lower,
            "upper" => Function::Upper,
            "length" | "char_length" | "character_length" => Function::Length,
            _ => return None,
        };
        let argument = values.pop().filter(|_| values.is_empty())?;
        Some(Formula::Call { function, argument: Box::new(argument) })
    }
}

fn operator(symbol: &str) -> Option<Operator> {
    Some(match symbol {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Remainder,
        "||" => Operator::Concatenate,
        _ => return None,
    })
}

/// A decimal number without exponent.
fn number(text: &str) -> Option<Scalar> {
    let Some((whole, fraction)) = text.split_once('.') else { return text.parse().ok().map(Scalar::Integer) };
    let number = [whole, fraction].concat().parse().ok()?;
    Some(Scalar::Decimal { number, scale: u16::try_from(fraction.len()).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Formula> {
        formula(text, &["a", "price", "t", "VALUE"])
    }

    #[test]
    fn arithmetic_casts_and_functions_are_read() {
        let column = |position| Box::new(Formula::Column(position));
        let product = Formula::Operation {
            operator: Operator::Multiply,
            left: column(1),
            right: Box::new(Formula::Cast { to: Class::Decimal, value: column(0) }),
        };
        assert_eq!(parse("(price * (a)::numeric)"), Some(product));
        let joined = Formula::Operation {
            operator: Operator::Concatenate,
            left: Box::new(Formula::Call { function: Function::Lower, argument: column(2) }),
            right: Box::new(Formula::Constant(Scalar::Text(" it's".into()))),
        };
        assert_eq!(parse("(lower(t) || ' it''s'::text)"), Some(joined));
        let either = Formula::Coalesce(vec![Formula::Column(0), Formula::Constant(Scalar::Integer(-1))]);
        assert_eq!(parse("COALESCE(a, '-1'::integer)"), Some(either));
        assert_eq!(parse("0.190"), Some(Formula::Constant(Scalar::Decimal { number: 190, scale: 3 })));
    }

    #[test]
    fn what_is_not_understood_is_no_formula() {
        for text in [
            "date_trunc('day'::text, t)",
            "(- a)",
            "((a)::double precision * (2)::double precision)",
            "(price)::numeric(5,1)",
            "(t ->> 'a'::text)",
            "CASE WHEN (a > 0) THEN 1 ELSE 0 END",
            "lower(t COLLATE \"tr\")",
            "concat(t, t)",
            "(a OPERATOR(public.+) 1)",
            "1e3",
            "(t || E'\\n'::text)",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
