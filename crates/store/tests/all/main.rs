//! The conformance suite of the store, run over every kind of store there is.
// Clippy knows only functions marked as tests, not what they share.
#![allow(clippy::unwrap_used)]

mod access;
mod author;
mod backup;
mod clock;
mod commit;
mod count;
mod failure;
mod fold;
mod home;
mod hook;
mod journal;
mod key;
mod ledger;
mod lineage;
mod list;
mod random;
mod reopen;
mod schema;
mod scope;
mod send;
mod sweep;
mod tail;

/// Each case, by module and name, as a test of its own with a new home for a store. With two workers, as in a hub: then
/// commits that come alone are flushed by whoever made them, and the others at the writer's thread.
macro_rules! cases {
    ($home:expr; $($module:ident: $($case:ident)*;)*) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(&$home).await;
            })*
        })*
    };
}

/// What any store must do.
macro_rules! suite {
    ($home:expr) => {
        cases! { $home;
            access: a_key_is_known_until_it_is_revoked_or_expires a_key_in_use_costs_microseconds;
            commit: commits_are_made_in_order commits_are_acknowledged_in_order a_stale_commit_is_skipped_alone
                    what_was_written_is_read_back a_new_task_does_not_replace_one open_runs_are_those_under_way
                    tasks_that_wait_for_their_caller_are_found;
            count: totals_are_exact_under_random_histories;
            hook: hooks_are_read_back_by_those_who_may_see_them a_task_has_so_many_and_one_of_the_same_name_is_renewed
                  attempts_are_numbered_and_kept_with_what_came_of_them what_an_attempt_began_with_may_have_changed
                  active_hooks_come_with_where_their_tasks_stand pages_are_newest_first_and_by_state
                  hooks_go_with_their_task what_is_settled_together_is_all_there
                  a_deleted_one_is_kept_for_its_owner_alone a_task_can_leave_so_many_deleted_ones_behind;
            key: keys_are_found_by_hash_and_revoked_by_name names_are_taken_once a_key_is_replaced_all_at_once
                 a_name_is_somebody_else_in_another_workspace every_change_of_keys_has_its_revision
                 agents_keep_their_numbers agents_that_registered_are_there_with_what_they_last_said
                 agents_that_were_added_stay_until_they_are_removed
                 workers_are_there_with_what_they_last_announced alerts_are_owed_until_they_are_told;
            ledger: approvals_follow_the_log_and_are_their_owner_s usage_is_summed_by_day_and_outlives_its_task
                    usage_is_booked_on_whoever_does_the_work;
            lineage: a_delegated_task_is_read_back_whole deadlines_are_of_tasks_that_have_not_ended;
            list: pages_agree_with_a_model totals_do_not_depend_on_the_page exchanges_are_not_listed
                  artifacts_are_left_out_when_not_wanted;
            scope: a_task_is_seen_by_its_caller_its_owner_and_the_hub lists_are_of_one_principal_and_agent
                a_context_s_latest_exchanges_are_found an_agent_s_open_tasks_are_counted_over_all_callers
                an_agent_that_was_given_a_task_is_known;
            send: a_key_is_sent_once a_stale_send_was_not_made sends_are_forgotten_by_age sends_are_forgotten_by_number;
            sweep: long_logs_come_to_the_same_after_a_sweep ended_tasks_go_by_age ended_tasks_go_by_number
                   age_and_number_together_take_no_more_than_each open_tasks_do_not_shelter_ended_ones
                   old_events_go_but_their_result_stays a_sweep_of_nothing_changes_nothing;
            tail: owners_read_on_after_any_event peers_read_on_after_any_visible_event pruned_events_are_said_to_be
                  large_changes_are_read_on_to_the_end;
        }
    };
}

/// What a store must do besides that outlives its process.
macro_rules! durable_suite {
    ($home:expr) => {
        cases! { $home;
            failure: a_failed_commit_takes_nothing_with_it a_failed_send_was_not_made;
            hook: hooks_are_there_again;
            ledger: the_ledger_is_there_again;
            lineage: a_delegated_task_is_there_again the_hub_stays_the_same;
            reopen: everything_is_there_again sends_are_remembered the_epoch_stays;
            fold: long_logs_are_folded_when_they_have_ended;
            tail: large_changes_come_a_few_at_a_time;
        }
    };
}

mod memory {
    suite!(crate::home::Nowhere);
}

mod sqlite {
    suite!(crate::home::File::new());
}

mod sqlite_on_disk {
    durable_suite!(crate::home::File::new());
}
