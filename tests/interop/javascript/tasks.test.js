// Looking at tasks: one with its history, lists with filters and pages, subscribe, cancel, and whose they are.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import { ENDED, OTHER_KEY, drain, each, event, lines, texts } from './talk.js';

/** Tasks of one fresh context, oldest first. */
async function aContext(talk, count) {
  const tasks = [await talk.say('task 1')];
  while (tasks.length < count) {
    tasks.push(await talk.say(`task ${tasks.length + 1}`, { contextId: tasks[0].contextId }));
  }
  return tasks;
}

const next = async (stream) => event((await stream.next()).value).line;

each('history length', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('order a pizza');
  await talk.say('large', { taskId: id });
  const { history } = await talk.get(id);
  assert.deepEqual(history.flatMap((m) => texts(m.parts)).slice(0, 3), ['order a pizza', 'Which size?', 'large']);
  assert.equal((await talk.get(id, { historyLength: 0 })).history, undefined);
  for (let historyLength = 1; historyLength <= history.length; historyLength++) {
    assert.deepEqual((await talk.get(id, { historyLength })).history, history.slice(-historyLength));
  }
  assert.deepEqual((await talk.get(id, { historyLength: 1000 })).history, history);
});

each('history length of a send', async (connect) => {
  const talk = await connect();
  assert.equal((await talk.say('stream', { historyLength: 0 })).history, undefined);
  const task = await talk.say('stream', { historyLength: 1 });
  assert.deepEqual(task.history, (await talk.get(task.id)).history.slice(-1));
});

each('history and artifacts in a list', async (connect) => {
  const talk = await connect();
  const task = await talk.say('stream');
  const { contextId } = task;
  const { tasks: [bare] } = await talk.list({ contextId, historyLength: 0 });
  assert.deepEqual([bare.id, bare.artifacts, bare.history], [task.id, undefined, undefined]);
  const { tasks: [full] } = await talk.list({ contextId, historyLength: 1000, includeArtifacts: true });
  assert.deepEqual(full, task);
});

each('pages hold every task once, newest first', async (connect) => {
  const talk = await connect('ledger');
  const total = (await talk.list({ pageSize: 1 })).totalSize + 7;
  const made = (await aContext(talk, 7)).map((task) => task.id);
  const found = await talk.pages(3);
  assert.ok(found.every((page) => page.totalSize === total));
  assert.ok(found.slice(0, -1).every((page) => page.tasks.length === 3));
  const listed = found.flatMap((page) => page.tasks);
  assert.deepEqual(listed.slice(0, 7).map((task) => task.id), made.toReversed());
  assert.deepEqual([listed.length, new Set(listed.map((task) => task.id)).size], [total, total]);
  const stamps = listed.map((task) => Date.parse(task.status.timestamp));
  assert.deepEqual(stamps, stamps.toSorted((a, b) => b - a));
});

each('pages of one context', async (connect) => {
  const talk = await connect('ledger');
  const made = await aContext(talk, 7);
  const { contextId } = made[0];
  const sizes = (await talk.pages(3, { contextId })).map((page) => [page.tasks.length, page.totalSize]);
  assert.deepEqual(sizes, [[3, 7], [3, 7], [1, 7]]);
  const [only, ...rest] = await talk.pages(7, { contextId });
  assert.deepEqual(only.tasks.map((task) => task.id), made.map((task) => task.id).toReversed());
  assert.equal(rest.length, 0);
});

each('a new task does not shift the pages', async (connect) => {
  const talk = await connect('ledger');
  const made = await aContext(talk, 4);
  const { contextId } = made[0];
  const { nextPageToken: pageToken } = await talk.list({ contextId, pageSize: 2 });
  await talk.say('late', { contextId });
  assert.deepEqual(await talk.ids({ contextId, pageSize: 2, pageToken }), [made[1].id, made[0].id]);
});

each('a page holds fifty unless told, and a hundred at most', async (connect) => {
  const talk = await connect('ledger');
  const { contextId } = await talk.say('task 1');
  await Promise.all(Array.from({ length: 101 }, (_, n) => talk.say(`task ${n + 2}`, { contextId })));
  const first = await talk.list({ contextId });
  assert.deepEqual([first.tasks.length, first.pageSize, first.totalSize], [50, 50, 102]);
  assert.deepEqual((await talk.pages(100, { contextId })).map((page) => page.tasks.length), [100, 2]);
});

each('filter by state', async (connect) => {
  const talk = await connect();
  const asked = await talk.say('order');
  const { contextId } = asked;
  const failed = await talk.say('fail', { contextId });
  await talk.say('files', { contextId });
  assert.deepEqual(await talk.ids({ contextId, status: 'TASK_STATE_INPUT_REQUIRED' }), [asked.id]);
  assert.deepEqual(await talk.ids({ contextId, status: 'TASK_STATE_FAILED' }), [failed.id]);
  assert.deepEqual(await talk.ids({ contextId, status: 'TASK_STATE_CANCELED' }), []);
  assert.equal((await talk.list({ contextId, status: 'TASK_STATE_FAILED' })).totalSize, 1);
});

each('filter by time includes the very moment', async (connect) => {
  const talk = await connect();
  const made = [];
  for (const n of [1, 2, 3]) {
    made.push(await talk.say(`task ${n}`, { contextId: made[0]?.contextId }));
    // The next one is at least a millisecond younger.
    while (Date.now() < Date.parse(made.at(-1).status.timestamp) + 2) await pause(1);
  }
  const found = await talk.ids({ contextId: made[0].contextId, statusTimestampAfter: made[1].status.timestamp });
  assert.deepEqual(found, [made[2].id, made[1].id]);
});

each('a task that moves comes first', async (connect) => {
  const talk = await connect();
  const asked = await talk.say('order');
  const { contextId } = asked;
  const later = await talk.say('files', { contextId });
  assert.deepEqual(await talk.ids({ contextId }), [later.id, asked.id]);
  await talk.say('large', { taskId: asked.id });
  assert.deepEqual(await talk.ids({ contextId }), [asked.id, later.id]);
});

each('subscribe joins a running task and sees its end', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('slow 1s', { returnImmediately: true });
  const events = await drain(talk.subscribe(id));
  assert.equal(events[0].value.id, id);
  assert.match(events[0].line, /^task TASK_STATE_(SUBMITTED|WORKING)$/);
  assert.deepEqual(lines(events).slice(-2), ['artifactUpdate At last', 'statusUpdate TASK_STATE_COMPLETED']);
});

each('subscribers stay through a question', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('order');
  const stream = talk.subscribe(id);
  assert.equal(await next(stream), 'task TASK_STATE_INPUT_REQUIRED');
  await talk.say('medium', { taskId: id });
  const events = await drain(stream);
  assert.deepEqual(events.slice(-3).map(({ kind }) => kind), ['statusUpdate', 'artifactUpdate', 'statusUpdate']);
  assert.equal(lines(events).at(-1), 'statusUpdate TASK_STATE_COMPLETED');
});

each('every subscriber sees a cancel', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('hold', { returnImmediately: true });
  await talk.reaches(id, ['TASK_STATE_WORKING']);
  const streams = [talk.subscribe(id), talk.subscribe(id)];
  for (const stream of streams) assert.equal(await next(stream), 'task TASK_STATE_WORKING');
  const canceled = await talk.cancel(id);
  assert.deepEqual([canceled.id, canceled.status.state], [id, 'TASK_STATE_CANCELED']);
  for (const stream of streams) assert.deepEqual(lines(await drain(stream)), ['statusUpdate TASK_STATE_CANCELED']);
  assert.equal((await talk.get(id)).status.state, 'TASK_STATE_CANCELED');
});

each('cancel ends a task that waits for input', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('order');
  assert.equal((await talk.cancel(id)).status.state, 'TASK_STATE_CANCELED');
});

each('a task outlives the caller who hangs up', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('slow 500ms', { returnImmediately: true });
  const stream = talk.subscribe(id);
  await stream.next();
  await stream.return();
  assert.equal((await talk.reaches(id, ENDED)).status.state, 'TASK_STATE_COMPLETED');
});

each('two keys do not see each other\'s tasks', async (connect) => {
  const [talk, other] = [await connect(), await connect('script', { key: OTHER_KEY })];
  const mine = await talk.say('order');
  await assert.rejects(other.get(mine.id), TaskNotFoundError);
  await assert.rejects(other.cancel(mine.id), TaskNotFoundError);
  await assert.rejects(drain(other.subscribe(mine.id)), TaskNotFoundError);
  await assert.rejects(other.say('large', { taskId: mine.id }), TaskNotFoundError);
  assert.deepEqual(await talk.get(mine.id), mine);
  const theirs = await other.say('files');
  for (const [caller, seen, hidden] of [[talk, mine, theirs], [other, theirs, mine]]) {
    assert.deepEqual(await caller.ids({ contextId: seen.contextId }), [seen.id]);
    const { tasks, totalSize } = await caller.list({ contextId: hidden.contextId });
    assert.deepEqual([tasks, totalSize], [[], 0]);
  }
});

each('both transports show the same task', async (connect) => {
  const task = await (await connect()).say('stream');
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    const reader = await connect('script', { binding });
    assert.deepEqual(await reader.get(task.id), task);
    assert.deepEqual((await reader.list({ contextId: task.contextId, includeArtifacts: true })).tasks, [task]);
  }
});

each('an agent\'s door shows only its own tasks', async (connect) => {
  const talk = await connect('script');
  const { id, contextId } = await (await connect('echo')).say('hello');
  await assert.rejects(talk.get(id), TaskNotFoundError);
  assert.deepEqual(await talk.ids({ contextId }), []);
});
