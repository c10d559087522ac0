// Sending: blocking, at once, streaming, turn by turn, again, and with parts of every kind.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Artifact, Message, Role } from '@a2a-js/sdk';
import { ServiceParameters, withA2AExtensions } from '@a2a-js/sdk/client';
import { ENDED, KEY, OTHER_KEY, each, eachHttp, lines, texts } from './talk.js';

/** The same test with a plain and with a streaming send. */
function eitherWay(name, run) {
  each(`${name} (plain)`, (connect) => run(connect, false));
  each(`${name} (streaming)`, (connect) => run(connect, true));
}

each('a blocking send returns the ended task', async (connect) => {
  const talk = await connect();
  const task = await talk.say('slow 100ms');
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(texts(task.status.message.parts), ['Done']);
  assert.deepEqual(task.artifacts.map((a) => [a.name, texts(a.parts)]), [['result', ['At last']]]);
  assert.ok(task.id && task.contextId);
  assert.deepEqual(await talk.get(task.id), task);
});

each('returnImmediately does not wait', async (connect) => {
  const talk = await connect();
  const task = await talk.say('slow 500ms', { returnImmediately: true });
  assert.ok(!ENDED.includes(task.status.state), task.status.state);
  const ended = await talk.reaches(task.id, ENDED);
  assert.equal(ended.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(texts(ended.artifacts[0].parts), ['At last']);
});

each('a stream shows each step in order', async (connect) => {
  const talk = await connect();
  const events = await talk.stream('stream');
  assert.deepEqual(lines(events), [
    'task TASK_STATE_SUBMITTED',
    'statusUpdate TASK_STATE_WORKING',
    'artifactUpdate one ',
    'artifactUpdate two ',
    'artifactUpdate three',
    'statusUpdate TASK_STATE_COMPLETED',
  ]);
  const [{ value: first }, ...updates] = events;
  for (const { value } of updates) assert.deepEqual([value.taskId, value.contextId], [first.id, first.contextId]);
  const chunks = updates.filter(({ kind }) => kind === 'artifactUpdate').map(({ value }) => value);
  assert.deepEqual(chunks.map((c) => [c.artifact.artifactId, c.append, c.lastChunk]), [
    ['story', false, false],
    ['story', true, false],
    ['story', true, true],
  ]);
  assert.equal(texts((await talk.get(first.id)).artifacts[0].parts).join(''), 'one two three');
});

each('an agent that does not stream answers all the same', async (connect) => {
  assert.deepEqual(lines(await (await connect('calm')).stream('hello')), ['task TASK_STATE_COMPLETED']);
});

eitherWay('a conversation goes on in the same task', async (connect, streaming) => {
  const talk = await connect();
  const { id, contextId } = await talk.begin(streaming, 'order a pizza');
  const asked = await talk.get(id);
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.deepEqual(texts(asked.status.message.parts), ['Which size?']);
  const next = await talk.begin(streaming, 'large', { taskId: id, contextId });
  assert.deepEqual([next.id, next.contextId], [id, contextId]);
  const done = await talk.get(id);
  assert.equal(done.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(done.artifacts[0].parts, [{ data: { size: 'large', turn: '2' } }]);
});

each('the context follows from the task', async (connect) => {
  const talk = await connect();
  const asked = await talk.say('order');
  const done = await talk.say('small', { taskId: asked.id });
  assert.deepEqual([done.id, done.contextId], [asked.id, asked.contextId]);
});

each('a context can hold several tasks', async (connect) => {
  const talk = await connect();
  const first = await talk.say('files');
  const second = await talk.say('files', { contextId: first.contextId });
  assert.notEqual(second.id, first.id);
  assert.equal(second.contextId, first.contextId);
});

each('auth required interrupts a blocking send', async (connect) => {
  assert.equal((await (await connect()).say('login')).status.state, 'TASK_STATE_AUTH_REQUIRED');
});

eitherWay('a direct message instead of a task', async (connect, streaming) => {
  const talk = await connect();
  const message = await talk.begin(streaming, 'direct talk');
  assert.equal(message.role, Role.ROLE_AGENT);
  assert.deepEqual(Message.toJSON(message).parts, [{ text: 'You said direct talk' }, { data: { direct: true } }]);
  if (streaming) assert.equal((await talk.stream('direct talk')).length, 1);
});

const BYTES = Buffer.from([...Array(256).keys()]).toString('base64');
const PARTS = [
  { text: 'Grüße, 世界 🌍\n"quoted"', mediaType: 'text/plain', metadata: { lang: 'de', n: 1 } },
  { raw: BYTES, filename: 'all bytes.bin', mediaType: 'application/octet-stream' },
  { url: 'https://example.com/a%20b?c=d', filename: 'a b.png', mediaType: 'image/png' },
  { data: { deep: [{ int: Number.MAX_SAFE_INTEGER, float: 0.1, none: null }, [], {}, '', false] } },
  { data: 'a bare string', mediaType: 'application/json' },
  { data: 0 },
  { text: '' },
];

eitherWay('parts of every kind come back unchanged', async (connect, streaming) => {
  const talk = await connect('echo');
  let id;
  if (streaming) {
    const events = await talk.stream(PARTS);
    const { value } = events.find(({ kind }) => kind === 'artifactUpdate');
    assert.deepEqual(Artifact.toJSON(value.artifact).parts, PARTS);
    id = events[0].value.id;
  } else {
    ({ id } = await talk.say(PARTS));
  }
  const task = await talk.get(id);
  assert.deepEqual(task.artifacts[0].parts, PARTS);
  assert.deepEqual([task.history[0].role, task.history[0].parts], ['ROLE_USER', PARTS]);
});

each('an agent\'s own files and data arrive', async (connect) => {
  assert.deepEqual((await (await connect()).say('files')).artifacts[0].parts, [
    { text: 'a text', mediaType: 'text/markdown', metadata: { kind: 'note' } },
    { raw: 'AAEC/w==', filename: 'blob.bin', mediaType: 'application/octet-stream' },
    { url: 'https://example.com/a.png', filename: 'a.png', mediaType: 'image/png' },
    { data: { nested: { list: [1, 2.5, 'three', null, true] } } },
  ]);
});

for (const [word, state, why] of [
  ['fail', 'TASK_STATE_FAILED', 'This went wrong'],
  ['reject', 'TASK_STATE_REJECTED', 'I do not want to'],
]) {
  each(`a task that ends badly says why: ${word}`, async (connect) => {
    const talk = await connect();
    const task = await talk.say(word);
    assert.deepEqual([task.status.state, texts(task.status.message.parts)], [state, [why]]);
    assert.deepEqual(await talk.get(task.id), task);
    assert.equal(lines(await talk.stream(word)).at(-1), `statusUpdate ${state}`);
  });
}

each('the same message id is the same task', async (connect) => {
  const talk = await connect();
  const messageId = randomUUID();
  const first = await talk.say('files', { messageId });
  assert.deepEqual(await talk.say('files', { messageId }), first);
  assert.equal((await talk.stream('files', { messageId }))[0].value.id, first.id);
});

each('a resend joins the running task', async (connect) => {
  const talk = await connect();
  const messageId = randomUUID();
  const first = await talk.say('slow 500ms', { messageId, returnImmediately: true });
  for (const again of await Promise.all([1, 2, 3].map(() => talk.say('slow 500ms', { messageId })))) {
    assert.deepEqual([again.id, again.status.state], [first.id, 'TASK_STATE_COMPLETED']);
  }
});

each('another key\'s same message id is another task', async (connect) => {
  const messageId = randomUUID();
  const mine = await (await connect()).say('files', { messageId });
  const theirs = await (await connect('script', { key: OTHER_KEY })).say('files', { messageId });
  assert.notEqual(mine.id, theirs.id);
});

each('a named extension opens the strict agent', async (connect) => {
  const serviceParameters = ServiceParameters.create(withA2AExtensions('urn:example:ext:strict'));
  const task = await (await connect('strict')).say('hello', { options: { serviceParameters } });
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
});

eachHttp('the SDK tries another key after a 401', async (connect) => {
  const talk = await connect('echo', { key: 'expired', second: KEY });
  assert.equal((await talk.say('hello')).status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(talk.statuses, [401]);
});
