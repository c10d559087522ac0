//! Names of resources in 0.3: `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`.

use crate::a2a::error::Refusal;

const TASKS: &str = "tasks/";
const CONFIGS: &str = "/pushNotificationConfigs/";

pub fn of_task(id: &str) -> String {
    format!("{TASKS}{id}")
}

pub fn of_config(task: &str, id: &str) -> String {
    format!("{TASKS}{task}{CONFIGS}{id}")
}

/// The task's id; `field` is where the name stands.
pub fn task<'a>(field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    let id = name.strip_prefix(TASKS).filter(|id| is_id(id));
    id.ok_or_else(|| Refusal::invalid(field, "must be the name of a task, as in tasks/ID"))
}

/// The ids of the task and of the config.
pub fn config<'a>(field: &str, name: &'a str) -> Result<(&'a str, &'a str), Refusal> {
    let ids = name.strip_prefix(TASKS).and_then(|rest| rest.split_once(CONFIGS));
    let ids = ids.filter(|(task, id)| is_id(task) && is_id(id));
    let wrong = "must be the name of a push config, as in tasks/ID/pushNotificationConfigs/ID";
    ids.ok_or_else(|| Refusal::invalid(field, wrong))
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

#[cfg(test)]
mod tests {
    use super::{config, of_config, of_task, task};

    #[test]
    fn names_give_back_the_ids_they_were_made_of() {
        assert_eq!(task("name", &of_task("a-1")), Ok("a-1"));
        assert_eq!(config("name", &of_config("a-1", "c")), Ok(("a-1", "c")));
        for wrong in ["", "a-1", "tasks/", "tasks/a/b", "task/a"] {
            assert_eq!(task("name", wrong).unwrap_err().violations[0].field, "name", "{wrong}");
        }
        for wrong in ["tasks/a", "tasks//pushNotificationConfigs/c", "tasks/a/pushNotificationConfigs/"] {
            assert!(config("name", wrong).is_err(), "{wrong}");
        }
    }
}
