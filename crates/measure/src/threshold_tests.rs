//! Thresholds, as users write them.

use std::time::Duration;

use super::*;

/// 100 transactions due: 97 succeeded after 1 to 97 ms, 2 failed, 1 was skipped, 200 ms late.
fn judged(threshold: &str) -> Finding {
    let mut latency = Latencies::default();
    (1..=97).for_each(|each| latency.record(Duration::from_millis(each)));
    let metrics = Metrics {
        tps: 312.4,
        due: 100,
        succeeded: 97,
        failed: 2,
        retried: 5,
        skipped: Some(Skipped { number: 1, limit: Duration::from_millis(200) }),
        late: None,
        latency: &latency,
        lag: None,
    };
    threshold.parse::<Threshold>().unwrap().judge(&metrics)
}

#[test]
fn what_was_found_is_told() {
    for (threshold, missed, text) in [
        ("p50>20ms", true, "p50 is 49.0 ms, over 20ms"),
        ("p50 > 50 ms", false, "p50 is 49.0 ms, not over 50 ms"),
        ("p94.5>=0.5s", false, "p94.5 is 93.1 ms, not at least 0.5s"),
        (
            "max>=96000us",
            true,
            "max, with 1 skipped transaction, is more than 200 ms, which is at least 96000us",
        ),
        (
            "max<1s",
            true,
            "pgrig cannot tell if max is under 1s, because skipped transactions (1) took more than 200 ms: give a higher --latency-limit",
        ),
        (
            "max<=200ms",
            false,
            "max, with 1 skipped transaction, is more than 200 ms, which is not at most 200ms",
        ),
        ("mean>50.0ms", true, "mean, with 1 skipped transaction, is more than 50.5 ms, which is over 50.0ms"),
        (
            "mean>1s",
            true,
            "pgrig cannot tell if mean is over 1s, because skipped transactions (1) took more than 50.5 ms: give a higher --latency-limit",
        ),
        ("tps<500", true, "tps is 312, under 500"),
        ("tps<300", false, "tps is 312, not under 300"),
        ("failed>0", true, "failed is 2, over 0"),
        ("failed>2", false, "failed is 2, not over 2"),
        ("skipped>0.5%", true, "skipped is 1.00 %, over 0.5%"),
        ("retried >= 5 %", true, "retried is 5.00 %, at least 5 %"),
    ] {
        let expected = Finding { threshold: threshold.to_owned(), missed, text: text.to_owned() };
        assert_eq!(judged(threshold), expected);
    }
}

/// 950 transactions took up to 74.9 ms, and 50 were skipped while the server stood still for a second.
#[test]
fn skipped_transactions_are_slower_than_the_limit_in_every_latency_threshold() {
    let (mut latency, mut lag) = (Latencies::default(), Latencies::default());
    (0..950).for_each(|each| latency.record(Duration::from_micros(1000 + each * 74_900 / 950)));
    (0..950).for_each(|each| lag.record(Duration::from_micros(each)));
    let metrics = Metrics {
        tps: 100.0,
        due: 1000,
        succeeded: 950,
        failed: 0,
        retried: 0,
        skipped: Some(Skipped { number: 50, limit: Duration::from_millis(100) }),
        late: Some(0),
        latency: &latency,
        lag: Some(&lag),
    };
    for (threshold, missed) in [
        ("p99>100ms", true),
        ("p95.1>100ms", true),
        ("p95>100ms", false),
        ("p95>70ms", true),
        ("p50>41ms", false),
        ("max>50ms", true),
        // The limit does not tell whether it is.
        ("p99>150ms", true),
        ("mean>150ms", true),
        ("p99<150ms", true),
        ("p99<100ms", false),
        ("lag-p99>5ms", true),
        ("lag-p95>5ms", false),
        ("lag-max>100ms", true),
    ] {
        let finding = threshold.parse::<Threshold>().unwrap().judge(&metrics);
        assert_eq!(finding.missed, missed, "{finding:?}");
    }
}

#[test]
fn what_was_not_measured_is_missed() {
    for (threshold, why) in [("lag-p99>5ms", "-R"), ("lag-max<1s", "-R"), ("late>1%", "-L")] {
        let finding = judged(threshold);
        assert!(finding.missed);
        assert!(finding.text.contains("is not known") && finding.text.contains(why), "{}", finding.text);
    }
    let nothing = Latencies::default();
    let metrics = Metrics {
        tps: f64::NAN,
        due: 0,
        succeeded: 0,
        failed: 0,
        retried: 0,
        skipped: Some(Skipped { number: 0, limit: Duration::from_millis(1) }),
        late: Some(0),
        latency: &nothing,
        lag: Some(&nothing),
    };
    for threshold in ["p99>20ms", "mean>1s", "lag-max>1s", "tps<500", "failed>1%", "late>1%"] {
        let finding = threshold.parse::<Threshold>().unwrap().judge(&metrics);
        assert!(finding.missed && finding.text.contains("is not known"), "{finding:?}");
    }
    assert!(!"failed>0".parse::<Threshold>().unwrap().judge(&metrics).missed);
}

#[test]
fn what_is_no_threshold_says_how_to_write_one() {
    for (text, remedy) in [
        ("", "p99>20ms"),
        ("p99", "p99>20ms"),
        ("p99=20ms", "p99>20ms"),
        (">20ms", "lag-p99"),
        ("latency>20ms", "p50, p99"),
        ("p0>20ms", "another percentile"),
        ("p100>20ms", "max"),
        ("pNaN>20ms", "another percentile"),
        ("lag-tps>5", "lag-mean"),
        ("p99>20", "has no unit: write it like 500us, 20ms"),
        ("p99>20%", "not a time"),
        ("p99>20 parsecs", "not a time"),
        ("p99>ms", "not a limit"),
        ("p99>-20ms", "not below 0"),
        ("p99>>20ms", "not a limit"),
        ("tps<5%", "not a plain number"),
        ("tps<500/s", "plain number"),
        ("failed>1ms", "with or without %"),
        ("failed>", "10 or 1%"),
    ] {
        let error = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(error.contains(remedy), "{text}: {error}");
    }
}
