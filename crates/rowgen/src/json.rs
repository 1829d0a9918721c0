//! The random JSON objects: made as fields, so that each encoder writes them in its own form.

/// An object: `{"id": 7, "name": "time", "price": 12.5, "active": true, "tags": ["the", "city"]}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Json {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    /// The price in cents, 0 to 99,999.
    pub(crate) cents: u32,
    pub(crate) active: bool,
    pub(crate) tags: [&'static str; 2],
}

impl Json {
    /// The price without zeros at its end, and how many of its digits are decimals.
    pub(crate) fn price(&self) -> (u32, u8) {
        match (self.cents / 10 % 10, self.cents % 10) {
            (0, 0) => (self.cents / 100, 0),
            (_, 0) => (self.cents / 10, 1),
            _ => (self.cents, 2),
        }
    }

    /// Appends the object as text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put("{\"id\": ");
        put(digits.format(self.id));
        put(", \"name\": \"");
        put(self.name);
        put("\", \"price\": ");
        put(digits.format(self.cents / 100));
        match (self.cents / 10 % 10, self.cents % 10) {
            (0, 0) => {}
            (tenths, 0) => {
                put(".");
                put(digits.format(tenths));
            }
            (tenths, hundredths) => {
                put(".");
                put(digits.format(tenths));
                put(digits.format(hundredths));
            }
        }
        put(", \"active\": ");
        put(if self.active { "true" } else { "false" });
        put(", \"tags\": [\"");
        put(self.tags[0]);
        put("\", \"");
        put(self.tags[1]);
        put("\"]}");
    }
}
