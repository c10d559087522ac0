"""Looking at tasks: one with its history, lists with filters and pages, subscribe, cancel, and whose they are."""

import asyncio
import time

import pytest
from a2a.types import TaskState
from a2a.utils.errors import TaskNotFoundError
from conftest import ENDED, OTHER_KEY, drain, kinds, texts


async def ids(talk, **filters):
    return [task.id for task in (await talk.list(**filters)).tasks]


async def pages(talk, size, **filters):
    """Every page of a list."""
    found = [await talk.list(page_size=size, **filters)]
    while token := found[-1].next_page_token:
        assert len(found) < 1000, "paging does not end"
        found.append(await talk.list(page_size=size, page_token=token, **filters))
    return found


async def a_context(talk, count):
    """Tasks of one fresh context, oldest first."""
    tasks = [await talk.say("task 1")]
    for n in range(2, count + 1):
        tasks.append(await talk.say(f"task {n}", context_id=tasks[0].context_id))
    return tasks


async def test_history_length(talk):
    asked = await talk.say("order a pizza")
    await talk.say("large", task_id=asked.id)
    history = list((await talk.get(asked.id)).history)
    said = [text for message in history for text in texts(message.parts)]
    assert said[:3] == ["order a pizza", "Which size?", "large"]
    assert len((await talk.get(asked.id, history_length=0)).history) == 0
    for length in range(1, len(history) + 1):
        assert list((await talk.get(asked.id, history_length=length)).history) == history[-length:]
    assert list((await talk.get(asked.id, history_length=1000)).history) == history


async def test_history_length_of_a_send(talk):
    assert len((await talk.say("stream", history_length=0)).history) == 0
    task = await talk.say("stream", history_length=1)
    assert list(task.history) == list((await talk.get(task.id)).history)[-1:]


async def test_history_and_artifacts_in_a_list(talk):
    task = await talk.say("stream")
    [bare] = (await talk.list(context_id=task.context_id, history_length=0)).tasks
    assert (bare.id, len(bare.artifacts), len(bare.history)) == (task.id, 0, 0)
    [full] = (await talk.list(context_id=task.context_id, history_length=1000, include_artifacts=True)).tasks
    assert full == task


async def test_pages_hold_every_task_once_newest_first(connect):
    talk = await connect("ledger")
    before = (await talk.list(page_size=1)).total_size
    made = [task.id for task in await a_context(talk, 7)]
    found = await pages(talk, 3)
    assert {page.total_size for page in found} == {before + 7}
    assert {len(page.tasks) for page in found[:-1]} == {3}
    listed = [task for page in found for task in page.tasks]
    assert [task.id for task in listed[:7]] == made[::-1]
    assert len({task.id for task in listed}) == len(listed) == before + 7
    stamps = [task.status.timestamp.ToNanoseconds() for task in listed]
    assert stamps == sorted(stamps, reverse=True)


async def test_pages_of_one_context(connect):
    talk = await connect("ledger")
    made = await a_context(talk, 7)
    context_id = made[0].context_id
    sizes = [(len(page.tasks), page.total_size) for page in await pages(talk, 3, context_id=context_id)]
    assert sizes == [(3, 7), (3, 7), (1, 7)]
    [only] = await pages(talk, 7, context_id=context_id)
    assert [task.id for task in only.tasks] == [task.id for task in reversed(made)]


async def test_a_new_task_does_not_shift_the_pages(connect):
    talk = await connect("ledger")
    made = await a_context(talk, 4)
    context_id = made[0].context_id
    first = await talk.list(context_id=context_id, page_size=2)
    await talk.say("late", context_id=context_id)
    rest = await ids(talk, context_id=context_id, page_size=2, page_token=first.next_page_token)
    assert rest == [made[1].id, made[0].id]


async def test_a_page_holds_fifty_unless_told_and_a_hundred_at_most(connect):
    talk = await connect("ledger")
    where = {"context_id": (await talk.say("task 1")).context_id}
    await asyncio.gather(*(talk.say(f"task {n}", **where) for n in range(2, 103)))
    default = await talk.list(**where)
    assert (len(default.tasks), default.page_size, default.total_size) == (50, 50, 102)
    assert [len(page.tasks) for page in await pages(talk, 100, **where)] == [100, 2]


async def test_filter_by_state(talk):
    asked = await talk.say("order")
    where = {"context_id": asked.context_id}
    failed = await talk.say("fail", **where)
    await talk.say("files", **where)
    assert await ids(talk, status=TaskState.TASK_STATE_INPUT_REQUIRED, **where) == [asked.id]
    assert await ids(talk, status=TaskState.TASK_STATE_FAILED, **where) == [failed.id]
    assert await ids(talk, status=TaskState.TASK_STATE_CANCELED, **where) == []
    assert (await talk.list(status=TaskState.TASK_STATE_FAILED, **where)).total_size == 1


async def test_filter_by_time_includes_the_very_moment(talk):
    made = []
    for n in range(3):
        made.append(await talk.say(f"task {n}", context_id=made[0].context_id if made else ""))
        while time.time() * 1000 < made[-1].status.timestamp.ToMilliseconds() + 2:
            await asyncio.sleep(0.001)  # the next one is at least a millisecond younger
    after = made[1].status.timestamp
    assert await ids(talk, context_id=made[0].context_id, status_timestamp_after=after) == [made[2].id, made[1].id]


async def test_a_task_that_moves_comes_first(talk):
    asked = await talk.say("order")
    later = await talk.say("files", context_id=asked.context_id)
    assert await ids(talk, context_id=asked.context_id) == [later.id, asked.id]
    await talk.say("large", task_id=asked.id)
    assert await ids(talk, context_id=asked.context_id) == [asked.id, later.id]


async def test_subscribe_joins_a_running_task_and_sees_its_end(talk):
    started = await talk.say("slow 1s", return_immediately=True)
    events = await drain(talk.subscribe(started.id))
    assert events[0].task.id == started.id
    assert events[0].task.status.state not in ENDED
    assert kinds(events)[-2:] == [("artifact", "At last"), ("status", "TASK_STATE_COMPLETED")]


async def test_subscribers_stay_through_a_question(talk):
    asked = await talk.say("order")
    stream = aiter(talk.subscribe(asked.id))
    assert kinds([await anext(stream)]) == [("task", "TASK_STATE_INPUT_REQUIRED")]
    await talk.say("medium", task_id=asked.id)
    assert kinds(await drain(stream))[-3:] == [
        ("status", "TASK_STATE_WORKING"),
        ("artifact", ""),
        ("status", "TASK_STATE_COMPLETED"),
    ]


async def test_every_subscriber_sees_a_cancel(talk):
    started = await talk.say("hold", return_immediately=True)
    await talk.reaches(started.id, TaskState.TASK_STATE_WORKING)
    streams = [aiter(talk.subscribe(started.id)) for _ in range(2)]
    for stream in streams:
        assert kinds([await anext(stream)]) == [("task", "TASK_STATE_WORKING")]
    canceled = await talk.cancel(started.id)
    assert (canceled.id, canceled.status.state) == (started.id, TaskState.TASK_STATE_CANCELED)
    for stream in streams:
        assert kinds(await drain(stream)) == [("status", "TASK_STATE_CANCELED")]
    assert (await talk.get(started.id)).status.state == TaskState.TASK_STATE_CANCELED


async def test_cancel_ends_a_task_that_waits_for_input(talk):
    asked = await talk.say("order")
    assert (await talk.cancel(asked.id)).status.state == TaskState.TASK_STATE_CANCELED


async def test_a_task_outlives_the_caller_who_hangs_up(talk):
    started = await talk.say("slow 500ms", return_immediately=True)
    stream = aiter(talk.subscribe(started.id))
    await anext(stream)
    await stream.aclose()
    assert (await talk.reaches(started.id, *ENDED)).status.state == TaskState.TASK_STATE_COMPLETED


async def test_two_keys_do_not_see_each_others_tasks(connect, talk):
    other = await connect(key=OTHER_KEY)
    mine = await talk.say("order")
    for attempt in (
        lambda: other.get(mine.id),
        lambda: other.cancel(mine.id),
        lambda: drain(other.subscribe(mine.id)),
        lambda: other.say("large", task_id=mine.id),
    ):
        with pytest.raises(TaskNotFoundError):
            await attempt()
    assert await talk.get(mine.id) == mine
    theirs = await other.say("files")
    for caller, seen, hidden in ((talk, mine, theirs), (other, theirs, mine)):
        assert await ids(caller, context_id=seen.context_id) == [seen.id]
        listed = await caller.list(context_id=hidden.context_id)
        assert (len(listed.tasks), listed.total_size) == (0, 0)


async def test_both_transports_show_the_same_task(connect, talk):
    task = await talk.say("stream")
    for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
        reader = await connect(binding=binding)
        assert await reader.get(task.id) == task
        assert list((await reader.list(context_id=task.context_id, include_artifacts=True)).tasks) == [task]


async def test_an_agents_door_shows_only_its_own_tasks(connect, talk):
    task = await (await connect("echo")).say("hello")
    with pytest.raises(TaskNotFoundError):
        await talk.get(task.id)
    assert await ids(talk, context_id=task.context_id) == []
