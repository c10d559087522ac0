// Files to and from an agent on the JavaScript SDK of A2A 0.3, which has their bytes where other SDKs have base64 text:
// also the first that it is ever sent, plainly and in a stream.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { KEY, URL } from '../matrix/cells.js';

const RAW = 'AAEC/2J5dGVz';

async function call(agent, method, message) {
  const params = { message: { messageId: randomUUID(), role: 'ROLE_USER', ...message } };
  const response = await fetch(`${URL}/agents/${agent}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0', Authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return response.text();
}

function check([mirrored, own, seen]) {
  assert.deepEqual([mirrored.raw, own.raw], [RAW, Buffer.from('hello123').toString('base64')]);
  assert.equal(seen.text, Buffer.from(RAW, 'base64').toString('hex'), 'what the agent saw');
}

for (const [binding, agent] of [
  ['JSONRPC', 'remote-javascript-0.3-rpc'],
  ['HTTP+JSON', 'remote-javascript-0.3-rest'],
  ['GRPC', 'remote-javascript-0.3-grpc'],
]) {
  const parts = [{ raw: RAW, mediaType: 'application/octet-stream' }];
  test(`files of @a2a-js/sdk 0.3 over ${binding}`, async () => {
    for (let turn = 0; turn < 2; turn++) {
      const { result } = JSON.parse(await call(agent, 'SendMessage', { parts }));
      assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(result));
      check(result.task.artifacts[0].parts);
    }
    const lines = (await call(agent, 'SendStreamingMessage', { parts })).split('\n').filter((line) => line.startsWith('data:'));
    const events = lines.map((line) => JSON.parse(line.slice(5)).result);
    check(events.find(({ artifactUpdate }) => artifactUpdate).artifactUpdate.artifact.parts);
  });
}
