//! Divides a number of values among recipients that have room for different numbers of values.

/// Something that gets some of the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipient {
    /// How many it has room for.
    pub(super) room: f64,
    /// Share of the values relative to other recipients, as long as there is room; above 0.
    pub(super) weight: f64,
}

/// How many values each recipient gets: `total` in all if that fits.
pub(super) fn level(places: &[Recipient], total: f64) -> Vec<f64> {
    let mut ascending: Vec<Recipient> = places.to_vec();
    ascending.sort_by(|one, other| (one.room / one.weight).total_cmp(&(other.room / other.weight)));
    let mut weight: f64 = places.iter().map(|place| place.weight).sum();
    let (mut left, mut level) = (total, 0.0);
    for place in ascending {
        level = left / weight;
        if place.room >= level * place.weight {
            break;
        }
        left -= place.room;
        weight -= place.weight;
        level = f64::INFINITY;
    }
    places.iter().map(|place| place.room.min(level * place.weight)).collect()
}

/// Whole numbers of values that recipients get, one after the other: their sums differ from those of the wanted ones by half a value, as far as
/// there is room.
pub(super) fn whole(wanted: &[f64], rooms: impl Iterator<Item = f64>) -> Vec<u64> {
    let (mut sum, mut given) = (0.0, 0.0);
    let next = |(wanted, room): (&f64, f64)| {
        sum += wanted;
        let values = (sum - given).round().clamp(0.0, room.floor());
        given += values;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let values = values as u64;
        values
    };
    wanted.iter().zip(rooms).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_whole_numbers_are_those_that_are_wanted() {
        let wanted = [1.48, 0.3, 0.2, 1.48, 1.48, 0.06, 3.0];
        assert_eq!(whole(&wanted, [9.0; 7].into_iter()), [1, 1, 0, 1, 2, 0, 3]);
        // A place without room gives to the next ones.
        assert_eq!(whole(&[2.0, 2.0, 2.0], [1.0, 2.0, 9.0].into_iter()), [1, 2, 3]);
    }

    fn even(rooms: &[f64], total: f64) -> Vec<f64> {
        let places: Vec<Recipient> = rooms.iter().map(|&room| Recipient { room, weight: 1.0 }).collect();
        level(&places, total)
    }

    #[test]
    fn what_some_have_no_room_for_goes_to_the_others() {
        assert_eq!(even(&[10.0, 1.0, 10.0, 2.0], 12.0), [4.5, 1.0, 4.5, 2.0]);
        assert_eq!(even(&[1.0, 2.0], 12.0), [1.0, 2.0]);
        assert_eq!(even(&[5.0, 5.0], 4.0), [2.0, 2.0]);
        assert!(even(&[], 4.0).is_empty());
        let weighted = [Recipient { room: 9.0, weight: 1.0 }, Recipient { room: 9.0, weight: 2.0 }];
        assert_eq!(level(&weighted, 6.0), [2.0, 4.0]);
    }
}
