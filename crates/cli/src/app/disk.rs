//! The server's disk in plans.

use measure::human::bytes;
use server::Survey;
use server::quote::shown;

/// The free space on the volume of the server's data, or why pgrig does not know it.
pub(crate) fn free_space(survey: &Survey) -> String {
    if let Some(disk) = &survey.environment.data_volume {
        return format!("{} free on {} ({})", bytes(disk.free), disk.mount, disk.file_system);
    }
    let unknown = "free space is not known";
    match survey.restricted_role() {
        Some(role) => format!(
            "{unknown}: role {role} may not read data_directory (GRANT pg_read_all_settings TO {})",
            shown(role)
        ),
        None => unknown.to_owned(),
    }
}
