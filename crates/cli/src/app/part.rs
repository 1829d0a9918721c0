//! Which part of a run this process is: by --part, or by the variables of Slurm, Kubernetes or the user.

use std::str::FromStr;

use crate::app::failure::Usage;

/// Most parts of a run.
const MOST_PARTS: usize = 10_000;

/// `--part` of a verb that does not use the variables without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartArg {
    /// By the variables.
    Auto,
    /// The numbers that the option gives as I/N.
    Numbers(Numbers),
}

impl FromStr for PartArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        numbers(text).map(Self::Numbers).map_err(|why| format!("{why}; or auto"))
    }
}

impl PartArg {
    /// The part.
    ///
    /// # Errors
    /// If no variable numbers it, or a variable makes no sense.
    pub(crate) fn part(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Part, Usage> {
        match self {
            Self::Numbers(numbers) => Ok(numbers.part()),
            Self::Auto => from_environment(variable)?.ok_or_else(|| {
                Usage(
                    "--part auto: no environment variable gives this process a part number (SLURM_ARRAY_TASK_ID; SLURM_PROCID in a step; \
                     JOB_COMPLETION_INDEX and PGRIG_PARTS; PGRIG_PART), or this process is the only part: give --part I/N, or leave out --part"
                        .to_owned(),
                )
            }),
        }
    }
}

/// Numbers of `--part I/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    number: usize,
    of: usize,
}

/// The numbers of `--part` and `PGRIG_PART`.
pub(crate) fn numbers(text: &str) -> Result<Numbers, String> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    let numbers = numbers.filter(|(number, of)| (1..=*of).contains(number) && *of <= MOST_PARTS);
    numbers.map(|(number, of)| Numbers { number, of }).ok_or_else(|| {
        format!(
            "give the number of this part, from 1, and the number of all parts, at most {MOST_PARTS}: 3/8"
        )
    })
}

/// Parses `--part` of a verb that uses the variables without it.
pub(crate) fn numbers_or_none(text: &str) -> Result<Numbers, String> {
    numbers(text).map_err(|why| {
        format!(
            "{why}; or leave out --part: pgrig then takes the part from Slurm's variables, from JOB_COMPLETION_INDEX with PGRIG_PARTS, \
             or from PGRIG_PART"
        )
    })
}

/// The part that a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Number of all parts.
    pub(crate) of: usize,
    /// Name of the run of which it is a part; empty if it has none.
    pub(crate) run: String,
}

impl Numbers {
    /// The part of these numbers, of a run without a name.
    pub(crate) fn part(self) -> Part {
        Part { number: self.number, of: self.of, run: String::new() }
    }
}

/// The part that this process is; none if it is the only one.
///
/// # Errors
/// If a variable makes no sense.
pub(crate) fn part(
    given: Option<Numbers>,
    run: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Part>, Usage> {
    let part = match given {
        Some(numbers) => Some(numbers.part()),
        None => from_environment(variable)?,
    };
    let named = run.map(str::to_owned).or_else(|| variable("PGRIG_RUN_ID").filter(|id| !id.is_empty()));
    Ok(part.map(|part| Part { run: named.unwrap_or(part.run), ..part }))
}

/// The variables that number this process as a part, and are set.
pub(crate) fn numbering(variable: &dyn Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let names = ["SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "JOB_COMPLETION_INDEX", "PGRIG_PART"];
    names.into_iter().filter(|name| variable(name).is_some_and(|value| !value.is_empty())).collect()
}

/// The part by the variables of Slurm, Kubernetes or the user; none if they name none, or the only one.
///
/// # Errors
/// If a variable makes no sense.
pub(crate) fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Part>, Usage> {
    let number = |name: &str| {
        let Some(text) = variable(name) else { return Ok(None) };
        text.trim()
            .parse::<usize>()
            .map(Some)
            .map_err(|_| Usage(format!("{name} is \"{text}\", not a number")))
    };
    if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
        let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
        let of = number("SLURM_ARRAY_TASK_COUNT")?.unwrap_or(1);
        let last = number("SLURM_ARRAY_TASK_MAX")?.unwrap_or(first + (of.max(1) - 1) * step);
        let is_regular = task >= first
            && (task - first) % step == 0
            && (task - first) / step < of
            && last == first + (of.max(1) - 1) * step;
        if !is_regular {
            return Err(Usage(format!(
                "the {of} tasks of this Slurm array are not numbered evenly from {first} to {last}: use an array such as \
                 --array=1-{of}, or number the parts with --part I/N"
            )));
        }
        let run = variable("SLURM_ARRAY_JOB_ID").unwrap_or_default();
        return several((task - first) / step + 1, of, format!("slurm {run}"));
    }
    // A batch script has these two variables, too, but only the tasks that srun starts belong to a step.
    if let (Some(task), Some(of), Some(step)) =
        (number("SLURM_PROCID")?, number("SLURM_NTASKS")?, variable("SLURM_STEP_ID"))
    {
        let job = variable("SLURM_JOB_ID").unwrap_or_default();
        return several(
            task + 1,
            number("SLURM_STEP_NUM_TASKS")?.unwrap_or(of),
            format!("slurm {job}.{step}"),
        );
    }
    if let (Some(index), Some(of)) = (number("JOB_COMPLETION_INDEX")?, number("PGRIG_PARTS")?) {
        return several(index + 1, of, String::new());
    }
    match variable("PGRIG_PART").filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => {
            let numbers = numbers(&text).map_err(|why| Usage(format!("PGRIG_PART={text}: {why}")))?;
            Ok(Some(numbers.part()))
        }
    }
}

/// The part of these numbers; none if it is the only one.
fn several(number: usize, of: usize, run: String) -> Result<Option<Part>, Usage> {
    if !(1..=of).contains(&number) || of > MOST_PARTS {
        return Err(Usage(format!(
            "by its environment variables, this process is part {number} of {of}: pgrig can run at most {MOST_PARTS} parts, \
             numbered from 1; give --part I/N"
        )));
    }
    Ok((of > 1).then_some(Part { number, of, run }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<(usize, usize, String)>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let part = part(None, None, &variable);
        part.map(|part| part.map(|part| (part.number, part.of, part.run))).map_err(|Usage(why)| why)
    }

    #[test]
    fn an_array_of_slurm_numbers_parts() {
        let array = |id, count, min, max, step| {
            found(&[
                ("SLURM_ARRAY_JOB_ID", "71"),
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_STEP", step),
                // Each task of an array is a job of one task.
                ("SLURM_PROCID", "0"),
                ("SLURM_NTASKS", "1"),
                ("SLURM_STEP_ID", "0"),
            ])
        };
        assert_eq!(array("1", "4", "1", "4", "1"), Ok(Some((1, 4, "slurm 71".to_owned()))));
        assert_eq!(array("12", "3", "8", "16", "4"), Ok(Some((2, 3, "slurm 71".to_owned()))));
        assert_eq!(array("5", "1", "5", "5", "1"), Ok(None));
        // --array=1,3,9
        assert!(array("3", "3", "1", "9", "1").unwrap_err().contains("--part"));
        assert!(array("x", "3", "1", "9", "1").unwrap_err().contains("SLURM_ARRAY_TASK_ID"));
    }

    #[test]
    fn tasks_of_a_step_are_parts_and_a_batch_script_is_none() {
        let task = [("SLURM_JOB_ID", "9"), ("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")];
        assert_eq!(found(&task), Ok(None));
        let step = [&task[..], &[("SLURM_STEP_ID", "1")]].concat();
        assert_eq!(found(&step), Ok(Some((3, 4, "slurm 9.1".to_owned()))));
        // srun -n 3 in a job of four tasks.
        let fewer = [&step[..], &[("SLURM_STEP_NUM_TASKS", "3")]].concat();
        assert_eq!(found(&fewer), Ok(Some((3, 3, "slurm 9.1".to_owned()))));
    }

    #[test]
    fn pods_of_an_indexed_job_and_the_user_number_parts() {
        let pod = [("JOB_COMPLETION_INDEX", "0"), ("PGRIG_PARTS", "8")];
        assert_eq!(found(&pod), Ok(Some((1, 8, String::new()))));
        assert_eq!(found(&pod[..1]), Ok(None));
        let named = [&pod[..], &[("PGRIG_RUN_ID", "monday")]].concat();
        assert_eq!(found(&named), Ok(Some((1, 8, "monday".to_owned()))));
        assert_eq!(found(&[("PGRIG_PART", "2/3")]), Ok(Some((2, 3, String::new()))));
        assert!(found(&[("PGRIG_PART", "3")]).unwrap_err().contains("PGRIG_PART=3"));
        assert!(found(&[("JOB_COMPLETION_INDEX", "8"), ("PGRIG_PARTS", "8")]).is_err());
        assert_eq!(found(&[]), Ok(None));
    }

    #[test]
    fn a_part_by_variables_has_to_be_one() {
        let auto: PartArg = "auto".parse().unwrap();
        let pod = |name: &str| match name {
            "JOB_COMPLETION_INDEX" => Some("2".to_owned()),
            "PGRIG_PARTS" => Some("4".to_owned()),
            _ => None,
        };
        let found = auto.part(&pod).unwrap();
        assert_eq!((found.number, found.of), (3, 4));
        assert!(
            auto.part(&|_| None)
                .unwrap_err()
                .0
                .contains("no environment variable gives this process a part number")
        );
        let given: PartArg = "2/4".parse().unwrap();
        let given = given.part(&pod).unwrap();
        assert_eq!((given.number, given.of), (2, 4));
        assert!("0/4".parse::<PartArg>().unwrap_err().contains("or auto"));
        assert!(numbers_or_none("auto").unwrap_err().contains("3/8; or leave out --part"));
        assert_eq!(numbers_or_none("2/4"), numbers("2/4"));
    }

    #[test]
    fn the_option_counts_before_variables() {
        let variable = |name: &str| (name == "PGRIG_PART").then(|| "2/3".to_owned());
        let given = numbers("1/5").unwrap();
        let part = part(Some(given), Some("a"), &variable).unwrap().unwrap();
        assert_eq!((part.number, part.of, part.run.as_str()), (1, 5, "a"));
        for wrong in ["0/1", "2/1", "1", "/", "a/b", "1/10001"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
