// The cells of the matrix, written once for both JavaScript SDKs: what every client must see of every agent.
// A test file of an SDK calls `cells` with its name and `connect`, which makes a client of an agent over a binding; the
// client does things the way of that SDK and says what came of them in the forms of plain.js.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

const env = (name) => process.env[name] ?? assert.fail(`${name} is not set: start these tests with ../run`);
export const URL = env('FLOTILLA_URL');
export const KEY = env('FLOTILLA_OWNER_KEY');

const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'];
// Those that do what README.md says, and of them those that are elsewhere. Beside them there is echo.
const REMOTE = ['remote-python-1.x', 'remote-python-0.3', 'remote-javascript-1.x'];
const AGENTS = ['echo', 'script', ...REMOTE];
const ENDED = ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'];

const SENT = [
  { raw: Buffer.from([0, 255, 98, 121, 116, 101, 115]), filename: 'sent.bin', mediaType: 'application/octet-stream' },
  { url: 'https://example.com/sent.png', filename: 'sent.png', mediaType: 'image/png' },
  { data: { whole: 7, half: 0.5, list: [null, true, 'ünïcode'], deep: { er: {} } } },
];
const FILES = [
  { text: 'a text', metadata: { kind: 'note' } },
  { raw: Buffer.from([0, 1, 2, 255]), filename: 'blob.bin', mediaType: 'application/octet-stream' },
  { url: 'https://example.com/a.png', filename: 'a.png', mediaType: 'image/png' },
  { data: { nested: { list: [1, 2.5, 'three', null, true] } } },
];

const words = (text) => [{ text }];
const texts = (parts) => parts.map(({ text }) => text ?? '').join('');
const only = (things) => (assert.equal(things.length, 1), things[0]);

async function reaches(client, id, ...states) {
  for (const deadline = Date.now() + 10_000; ; await pause(20)) {
    const task = await client.get(id);
    if (states.includes(task.state)) return task;
    assert.ok(Date.now() < deadline, `still ${task.state}`);
  }
}

/** A receiver of webhooks: `until` resolves to what came, once an event of it is enough. */
async function withReceiver(client, run) {
  const received = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, ...client.webhook(Buffer.concat(chunks).toString()) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = async () => {
    for (const deadline = Date.now() + 10_000; ; await pause(10)) {
      if (received.some(({ value }) => ENDED.includes(value.state))) return received;
      assert.ok(Date.now() < deadline, `none of ${received.length} webhooks told of the end`);
    }
  };
  try {
    return await run(`http://127.0.0.1:${server.address().port}/hook`, end);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const taskIdIn = ({ kind, value }) => (kind === 'task' ? value.id : value.taskId);

async function send(client, agent) {
  const [text, messageId] = [`tell me ${randomUUID()}`, randomUUID()];
  const task = await client.send(words(text), { messageId });
  assert.equal(task.state, 'COMPLETED');
  assert.deepEqual(only(task.artifacts).parts, words(agent === 'echo' ? text : `You said ${text}`));
  assert.equal(only(task.artifacts).name, agent === 'echo' ? 'echo' : 'reply');
  assert.equal(task.said, agent === 'echo' ? undefined : 'Done');
  const { id, contextId } = task;
  assert.deepEqual(task.history[0], { id: messageId, role: 'user', parts: words(text), taskId: id, contextId });
  assert.deepEqual(await client.get(id), task);
}

async function stream(client, agent) {
  const [first, ...rest] = await client.stream(words('stream please'));
  const { id, contextId } = first.value;
  assert.equal(first.kind, 'task');
  assert.ok(['SUBMITTED', 'WORKING'].includes(first.value.state), first.value.state);
  for (const { value } of rest) assert.deepEqual([value.taskId, value.contextId], [id, contextId]);
  const of = (wanted) => rest.filter(({ kind }) => kind === wanted).map(({ value }) => value);
  const statuses = of('status');
  assert.deepEqual([rest.at(-1).kind, rest.at(-1).value.state], ['status', 'COMPLETED']);
  assert.ok(statuses.slice(0, -1).every(({ state }) => !ENDED.includes(state)));
  if (client.saysFinal) assert.deepEqual(statuses.map(({ final }) => final), statuses.map((_, n) => n === statuses.length - 1));
  const chunks = of('artifact').map((chunk) => [texts(chunk.parts), chunk.append]);
  if (agent === 'echo') {
    assert.deepEqual(chunks, [['stream please', false]]);
  } else {
    const append = !client.loses.has('append');
    assert.deepEqual(chunks, [['one ', false], ['two ', append], ['three', append]]);
    assert.deepEqual(of('artifact').map((chunk) => [chunk.id, chunk.last]), [['story', false], ['story', false], ['story', true]]);
    assert.deepEqual(statuses.map(({ said }) => said).slice(-2), ['Streaming', 'Streamed']);
  }
  const kept = await client.get(id);
  assert.deepEqual(
    [kept.state, texts(only(kept.artifacts).parts)],
    ['COMPLETED', agent === 'echo' ? 'stream please' : 'one two three'],
  );
}

async function multiTurn(client, agent) {
  if (agent === 'echo') return turnsOfEcho(client);
  const asked = await client.send(words('order a pizza'));
  const { id: taskId, contextId } = asked;
  assert.deepEqual([asked.state, asked.said], ['INPUT_REQUIRED', 'Which size?']);
  const done = await client.send(words('large'), { taskId, contextId });
  assert.deepEqual([done.id, done.contextId, done.state, done.said], [taskId, contextId, 'COMPLETED', 'Here you are']);
  assert.deepEqual(only(done.artifacts).parts, [{ data: { size: 'large', turn: '2' } }]);
  const said = done.history.map(({ parts }) => texts(parts)).slice(0, 3);
  assert.deepEqual(said, ['order a pizza', 'Which size?', 'large']);
  const following = await client.send(words('tell more'), { contextId });
  assert.equal(following.contextId, contextId);
  assert.notEqual(following.id, taskId);
  assert.equal(texts(only(following.artifacts).parts), 'You said tell more');
}

/** It asks nothing: a second message goes on in the same context, and none in a task that has ended. */
async function turnsOfEcho(client) {
  const { id: taskId, contextId } = await client.send(words('one'));
  const second = await client.send(words('two'), { contextId });
  assert.equal(second.contextId, contextId);
  assert.notEqual(second.id, taskId);
  assert.equal(texts(only(second.artifacts).parts), 'two');
  await assert.rejects(client.send(words('three'), { taskId, contextId }));
}

async function cancel(client, agent) {
  const mark = randomUUID();
  const { id } = await client.send(words(`hold ${mark}`), { wait: false });
  if (agent === 'echo') { // which is done before anybody can stop it
    await reaches(client, id, 'COMPLETED');
  } else {
    assert.equal((await reaches(client, id, 'WORKING', ...ENDED)).state, 'WORKING');
    const canceled = await client.cancel(id);
    assert.deepEqual([canceled.id, canceled.state], [id, 'CANCELED']);
    assert.equal((await client.get(id)).state, 'CANCELED');
  }
  await assert.rejects(client.cancel(id), /cancel/i);
  if (REMOTE.includes(agent)) { // it is the agent itself that was told
    const told = await client.send(words(`canceled ${mark}`));
    assert.equal(texts(only(told.artifacts).parts), 'yes');
  }
}

/** Parts as this SDK shows them, which may lose some of what came. */
const shown = (client, parts) => parts.map((part) => Object.fromEntries(
  Object.entries(part).filter(([name]) => !client.loses.has(name)),
));

const withoutNull = ({ data, ...part }) =>
  (data ? { ...part, data: { ...data, list: data.list.filter((one) => one !== null) } } : part);

const zeroForNull = ({ data, ...part }) =>
  (data ? { data: { nested: { list: data.nested.list.map((one) => one ?? 0) } } } : part);

async function fileAndDataParts(client, agent) {
  const remote = REMOTE.includes(agent);
  const word = words(remote ? 'mirror' : 'files');
  const sent = client.loses.has('null') ? SENT.map(withoutNull) : SENT;
  const [back, files] = [shown(client, sent), shown(client, client.loses.has('null') ? FILES.map(zeroForNull) : FILES)];
  const task = await client.send([...word, ...sent]);
  assert.deepEqual(task.history[0].parts, [...word, ...back]);
  assert.deepEqual(only(task.artifacts).parts, { echo: [...word, ...back], script: files }[agent] ?? back);
  if (remote) {
    const made = only((await client.send(words('files'))).artifacts);
    assert.deepEqual([made.id, made.parts], ['files', files]);
  }
  assert.deepEqual(await client.get(task.id), task);
}

async function push(client, agent) {
  await withReceiver(client, async (url, end) => {
    const task = await client.send(words('stream'), { hook: { url, token: 't-1' } });
    const told = await end();
    for (const event of told) {
      assert.equal(taskIdIn(event), task.id);
      assert.equal(event.headers['x-a2a-notification-token'], 't-1');
    }
    const whole = client.pushesTasks
      ? texts(only(told.at(-1).value.artifacts).parts)
      : told.filter(({ kind }) => kind === 'artifact').map(({ value }) => texts(value.parts)).join('');
    assert.equal(whole, agent === 'echo' ? 'stream' : 'one two three');
  });
  if (agent !== 'echo') await pushOfALaterTurn(client);
}

/** A config made for a task that exists, read back, and told of what follows. */
async function pushOfALaterTurn(client) {
  const { id: taskId, contextId } = await client.send(words('order'));
  await withReceiver(client, async (url, end) => {
    const made = await client.setHook(taskId, { id: 'later', url });
    assert.deepEqual(made, { id: 'later', url });
    assert.deepEqual(await client.getHook(taskId, 'later'), made);
    await client.send(words('small'), { taskId, contextId });
    for (const event of await end()) assert.equal(taskIdIn(event), taskId);
  });
}

const ACTS = {
  'send': send,
  'stream': stream,
  'multi-turn': multiTurn,
  'cancel': cancel,
  'file and data parts': fileAndDataParts,
  'push': push,
};

/** A test for every agent, act and binding. */
export function cells(sdk, connect) {
  for (const [name, act] of Object.entries(ACTS)) {
    for (const agent of AGENTS) {
      for (const binding of BINDINGS) {
        test(`${name} [${sdk}, ${agent}, ${binding}]`, { timeout: 30_000 }, async () => {
          const client = await connect(agent, binding);
          await act(client, agent);
        });
      }
    }
  }
}
