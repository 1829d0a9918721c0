//! The budget against volumes that are only numbers.

use proptest::prelude::*;

use super::super::WalUse;
use super::super::file_volumes::FileVolumes;
use super::super::headroom::WalFacts;
use super::*;

impl Budget {
    fn admit(&mut self, now: Duration, chunk: ChunkSpace) -> Result<Ticket, No> {
        self.admit_of(now, chunk, Group::ALONE)
    }
}

const MB: u64 = 1_000_000;

/// Tables alone on their volume: only the requested space stays free.
fn alone() -> SpaceRule {
    let elsewhere = FileVolumes { data: 1, wal: Some(1), ..FileVolumes::TOGETHER };
    SpaceRule::at(elsewhere, &WalFacts::default(), WalUse::Little)
}

fn reading(size: u64, free: u64) -> Reading {
    Reading { heap: Space { size, used: size - free, free }, others: Vec::new(), wal_held: 0 }
}

fn budget(limits: Limits, free: u64) -> Budget {
    let mut budget = Budget::new(limits, Some((alone(), reading(1000 * MB, free))), Owed::NONE);
    budget.begin(START, reading(1000 * MB, free));
    budget
}

fn brim(reserve: u64) -> Limits {
    Limits { space: SpaceLimit::Brim { reserve }, ..Limits::default() }
}

fn heap(bytes: u64) -> ChunkSpace {
    ChunkSpace { heap: bytes, ..ChunkSpace::default() }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const START: Duration = Duration::ZERO;

#[test]
fn chunks_that_run_count() {
    let mut budget = budget(brim(100 * MB), 190 * MB);
    let first = budget.admit(START, heap(40 * MB)).unwrap();
    let second = budget.admit(START, heap(40 * MB)).unwrap();
    assert_eq!(budget.admit(START, heap(40 * MB)), Err(No::Wait(LOOK_AGAIN)), "the others may take less");
    budget.done(START, first);
    budget.done(START, second);
    assert_eq!(budget.admit(START, heap(40 * MB)), Err(No::Wait(LOOK_AGAIN)), "not seen yet");
    budget.observe(START, reading(1000 * MB, 130 * MB));
    let free = 130 * MB;
    let (volume, because) = (VolumeRole::Heap, "as asked".to_owned());
    let reached = StopReason::BrimReached { volume, free, kept: 100 * MB, because, needed: 40 * MB };
    assert_eq!(budget.admit(START, heap(40 * MB)), Err(No::Stop(reached)));
    assert!(budget.admit(START, heap(30 * MB)).is_ok(), "a smaller one fits");
}

#[test]
fn what_fits_nowhere_is_refused_at_once() {
    let mut budget = budget(brim(0), 50 * MB);
    let _running = budget.admit(START, heap(40 * MB)).unwrap();
    assert!(matches!(budget.admit(START, heap(51 * MB)), Err(No::Stop(StopReason::BrimReached { .. }))));
    assert!(matches!(budget.refuse_full(heap(51 * MB), 0), Err(LimitsError::NoRoom { .. })));
    assert!(budget.refuse_full(heap(51 * MB), MB).is_ok(), "dropped tables make room");
    let all = self::budget(brim(u64::MAX), 50 * MB);
    assert!(matches!(all.refuse_full(heap(MB), 0), Err(LimitsError::NoRoom { kept: u64::MAX, .. })));
}

#[test]
fn a_lack_of_space_means_what_was_asked_for() {
    let mut must_fit = budget(Limits::default(), 50 * MB);
    assert!(matches!(must_fit.admit(START, heap(60 * MB)), Err(No::Fail(OutOfSpace::NoRoom { .. }))));
    let until_free = Limits { space: SpaceLimit::UntilFree(20 * MB), ..Limits::default() };
    let mut until_free = budget(until_free, 50 * MB);
    let stop = until_free.admit(START, heap(40 * MB));
    assert!(matches!(stop, Err(No::Stop(StopReason::BrimReached { kept, .. })) if kept == 20 * MB));
    assert!(until_free.admit(START, heap(30 * MB)).is_ok());
}

#[test]
fn room_for_later_steps_stays() {
    let mut budget = budget(brim(0), 100 * MB);
    let later = Owed { keys: 10 * MB, ..Owed::NONE };
    let chunk = ChunkSpace { later, ..heap(40 * MB) };
    let ticket = budget.admit(START, chunk).unwrap();
    budget.done(START, ticket);
    budget.observe(START, reading(1000 * MB, 60 * MB));
    let ticket = budget.admit(START, chunk).unwrap();
    budget.failed(ticket);
    budget.observe(START, reading(1000 * MB, 60 * MB));
    assert!(budget.admit(START, heap(51 * MB)).is_err(), "10 MB are owed to the first");
    assert!(budget.admit(START, heap(50 * MB)).is_ok());

    let before = Budget::new(brim(0), Some((alone(), reading(1000 * MB, 60 * MB))), later.times(3));
    assert!(before.refuse_full(heap(31 * MB), 0).is_err(), "30 MB are owed to an earlier run");
    assert!(before.refuse_full(heap(30 * MB), 0).is_ok());
}

#[test]
fn wal_on_its_own_volume_needs_room_there() {
    let facts = WalFacts { segment_size: MB, max_wal_size: 100 * MB, ..WalFacts::default() };
    let files = FileVolumes { wal: Some(1), ..FileVolumes::TOGETHER };
    let rule = SpaceRule::at(files, &facts, WalUse::Full);
    let seen = |wal_held, free| Reading { wal_held, others: vec![free], ..reading(1000 * MB, 900 * MB) };
    let mut budget = Budget::new(brim(0), Some((rule, seen(30 * MB, 100 * MB))), Owed::NONE);
    let chunk = ChunkSpace { wal: 50 * MB, ..heap(MB) };
    let ticket = budget.admit(START, chunk).unwrap();
    budget.done(START, ticket);
    budget.observe(START, seen(50 * MB, 49 * MB));
    let stop = budget.admit(START, chunk);
    let at_wal = |kept, volume| kept == 50 * MB && volume == VolumeRole::Wal;
    assert!(
        matches!(stop, Err(No::Stop(StopReason::BrimReached { kept, volume, .. })) if at_wal(kept, volume))
    );

    let stays = WalFacts { archiving_fails: true, ..facts };
    let rule = SpaceRule::at(files, &stays, WalUse::Full);
    let mut budget = Budget::new(brim(0), Some((rule, seen(30 * MB, 100 * MB))), Owed::NONE);
    let _running = budget.admit(START, chunk).unwrap();
    assert_eq!(budget.admit(START, chunk), Err(No::Wait(LOOK_AGAIN)));
}

#[test]
fn time_ends_it_while_it_waits_too() {
    let limits = Limits { duration: Some(seconds(60)), wait_for_space: Some(seconds(600)), ..brim(0) };
    let mut budget = budget(limits, 50 * MB);
    assert!(matches!(budget.admit(seconds(59), heap(60 * MB)), Err(No::Wait(_))));
    let over = StopReason::Duration { seconds: 60.0 };
    assert_eq!(budget.admit(seconds(60), heap(60 * MB)), Err(No::Stop(over)));
}

#[test]
fn a_wait_ends_with_space_or_with_its_time() {
    let limits = Limits { wait_for_space: Some(seconds(10)), ..brim(0) };
    let mut budget = budget(limits, 50 * MB);
    assert!(budget.refuse_full(heap(60 * MB), 0).is_ok());
    let before = budget.admit(seconds(1), heap(40 * MB)).unwrap();
    assert_eq!(budget.admit(seconds(2), heap(60 * MB)), Err(No::Wait(LOOK_AGAIN)));
    budget.done(seconds(3), before);
    budget.observe(seconds(9), reading(1200 * MB, 210 * MB));
    let ticket = budget.admit(seconds(9), heap(60 * MB)).unwrap();
    budget.done(seconds(11), ticket);
    budget.observe(seconds(11), reading(1200 * MB, 50 * MB));
    assert!(matches!(budget.admit(seconds(20), heap(60 * MB)), Err(No::Wait(_))), "another wait");
    assert!(matches!(budget.admit(seconds(29), heap(60 * MB)), Err(No::Wait(_))));
    let Err(No::Stop(reason)) = budget.admit(seconds(30), heap(60 * MB)) else { panic!("it waits on") };
    assert!(matches!(reason, StopReason::BrimReached { .. }));
    let what: Vec<EventKind> = budget.events().iter().map(|event| event.what.clone()).collect();
    let waiting =
        |free, loaded| EventKind::WaitingForSpace { shortage: None, free: Some(free), up_to: 10.0, loaded };
    assert_eq!(
        what,
        [
            waiting(50 * MB, 0),
            EventKind::VolumeGrew { from: 1000 * MB, to: 1200 * MB },
            // The end of chunks that were running before the wait says nothing about free space.
            EventKind::SpaceCameBack { gained: Some(160 * MB), after: 7.0 },
            waiting(50 * MB, 100 * MB),
            EventKind::Stopped { reason, loaded: 100 * MB },
        ]
    );
}

#[test]
fn unseen_shortage_is_tried_again_ever_more_slowly() {
    let limits = Limits { wait_for_space: Some(seconds(200)), ..brim(0) };
    let mut budget = Budget::new(limits, None, Owed::NONE);
    let mut now = START;
    let mut pauses = Vec::new();
    let end = loop {
        let ticket = budget.admit(now, heap(60 * MB)).unwrap();
        match budget.short(now, ticket, Shortage::DiskFull) {
            No::Wait(pause) => {
                pauses.push(pause);
                now += pause;
            }
            end => break end,
        }
    };
    assert_eq!(end, No::Stop(StopReason::DiskFull { shortage: Shortage::DiskFull }));
    assert_eq!(now, seconds(200));
    assert!(pauses[..pauses.len() - 1].is_sorted(), "{pauses:?}");
    assert_eq!((pauses[0], pauses.iter().max()), (SHORTEST_RETRY, Some(&LONGEST_RETRY)));
    assert!(
        matches!(budget.admit(now, heap(MB)), Err(No::Stop(StopReason::DiskFull { .. }))),
        "for all streams"
    );
    assert_eq!(budget.events().len(), 2, "one wait, one end: {:?}", budget.events());
}

#[test]
fn without_brim_a_full_disk_is_a_failure() {
    let mut budget = Budget::new(Limits::default(), None, Owed::NONE);
    let ticket = budget.admit(START, heap(MB)).unwrap();
    let failed = OutOfSpace::Reported(Shortage::Quota);
    assert_eq!(budget.short(START, ticket, Shortage::Quota), No::Fail(failed));
}

#[test]
fn marks_are_told_once_in_the_order_of_filling() {
    let used = |percent| Mark::Used(Percent::new(percent).unwrap());
    let marks = vec![Mark::Free(150 * MB), used(95), used(80), used(50), Mark::Free(10 * MB)];
    let mut budget = budget(Limits { marks, ..Limits::default() }, 400 * MB);
    for free in [200 * MB + 1, 200 * MB, 40 * MB, 300 * MB, 40 * MB] {
        budget.observe(START, reading(1000 * MB, free));
    }
    let told: Vec<String> = budget.events().iter().map(|event| event.what.to_string()).collect();
    let begins =
        ["50 % used: passed before", "80 % used: crossed", "150 MB free: crossed", "95 % used: crossed"];
    assert_eq!(told.len(), begins.len(), "{told:?}");
    assert!(told.iter().zip(begins).all(|(told, begin)| told.starts_with(begin)), "{told:?}");
}

#[test]
fn events_have_their_place_in_the_run_document() {
    let mark = Mark::Used(Percent::new(80).unwrap());
    let mut budget = budget(Limits { marks: vec![mark], ..Limits::default() }, 400 * MB);
    budget.observe(seconds(2), reading(1000 * MB, 100 * MB));
    assert_eq!(
        serde_json::to_value(&budget.events()[0]).unwrap(),
        serde_json::json!({
            "at": 2.0, "event": "mark-crossed", "mark": {"used": 80}, "loaded": 0,
            "space": {"size": 1000 * MB, "used": 900 * MB, "free": 100 * MB},
        })
    );
}

/// Actions of streams, the volume and time, in any order.
#[derive(Clone, Debug)]
enum Step {
    /// A stream asks for a chunk.
    Ask(ChunkSpace),
    /// Writes so many percent of the space that a running chunk still takes.
    Write(prop::sample::Index, u64),
    Done(prop::sample::Index),
    Fail(prop::sample::Index),
    Look,
    Grow(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let chunk = (0..64 * MB, 0..64 * MB, 0..8 * MB, 0..8 * MB).prop_map(|(heap, wal, keys, sort)| {
        ChunkSpace { heap, wal, keys: 0, later: Owed { keys, sort, sort_memory: 0, wal: 0, maps: 0 } }
    });
    prop_oneof![
        4 => chunk.prop_map(Step::Ask),
        3 => (any::<prop::sample::Index>(), 0..=100_u64).prop_map(|(which, percent)| Step::Write(which, percent)),
        3 => any::<prop::sample::Index>().prop_map(Step::Done),
        1 => any::<prop::sample::Index>().prop_map(Step::Fail),
        3 => Just(Step::Look),
        1 => (0..200 * MB).prop_map(Step::Grow),
    ]
}

proptest! {
    /// In any order of events, the used space, the space that running chunks still take, and the space for later steps leave
    /// the reserve free; each mark is reported once, and events in order.
    #[test]
    fn what_stays_free_stays_free(
        steps in prop::collection::vec(step(), 1..200),
        free in 0..500 * MB,
        reserve in 0..200 * MB,
        percents in prop::collection::vec(1..=99_u8, 0..5),
    ) {
        let facts = WalFacts { segment_size: MB, archiving_fails: true, ..WalFacts::default() };
        let rule = SpaceRule::at(FileVolumes::TOGETHER, &facts, WalUse::Full);
        let mut marks: Vec<Mark> = percents.iter().filter_map(|p| Percent::new(*p)).map(Mark::Used).collect();
        marks.sort_unstable();
        marks.dedup();
        let (mut size, mut left) = (1000 * MB, free);
        let kept = reserve.max(rule.on_volume(0, &reading(size, left)).bytes);
        let limits = Limits { marks: marks.clone(), ..brim(reserve) };
        let mut budget = Budget::new(limits, Some((rule, reading(size, left))), Owed::NONE);
        budget.begin(START, reading(size, left));
        let mut running: Vec<(Ticket, u64)> = Vec::new();
        let mut owed = 0;
        let later = |ticket: &Ticket| ticket.chunk().later.keys + ticket.chunk().later.sort;
        let mut began = false;
        for (at, step) in (1..).zip(steps) {
            let now = seconds(at);
            let count = running.len();
            match step {
                Step::Ask(chunk) => if let Ok(ticket) = budget.admit(now, chunk) {
                    began = true;
                    running.push((ticket, chunk.heap + chunk.wal));
                },
                Step::Write(which, percent) if count > 0 => {
                    let (_, to_come) = &mut running[which.index(count)];
                    let written = *to_come * percent / 100;
                    *to_come -= written;
                    left -= written;
                }
                Step::Done(which) if count > 0 => {
                    let (ticket, to_come) = running.swap_remove(which.index(count));
                    left -= to_come;
                    owed += later(&ticket);
                    budget.done(now, ticket);
                }
                Step::Fail(which) if count > 0 => {
                    let (ticket, _) = running.swap_remove(which.index(count));
                    budget.failed(ticket);
                }
                Step::Write(..) | Step::Done(_) | Step::Fail(_) => {}
                Step::Look => budget.observe(now, reading(size, left)),
                Step::Grow(by) => {
                    size += by;
                    left += by;
                }
            }
            let to_come: u64 = running.iter().map(|(ticket, to_come)| to_come + later(ticket)).sum();
            prop_assert!(!began || left >= kept + to_come + owed, "{left} < {kept} + {to_come} + {owed}");
        }
        prop_assert!(budget.events().is_sorted_by(|a, b| a.at <= b.at));
        for mark in marks {
            let told = |event: &&Event| matches!(
                event.what,
                EventKind::MarkCrossed { mark: told, .. } | EventKind::MarkPassedBefore { mark: told, .. } if told == mark
            );
            prop_assert!(budget.events().iter().filter(told).count() <= 1);
        }
    }
}
