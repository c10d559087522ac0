// Push notifications: set up with the SDK, received here.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import {
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { each } from './talk.js';

/** Runs with a receiver of webhooks; `wait` resolves once so many have come. */
async function withReceiver(run) {
  const received = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks)) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const wait = async (count) => {
    for (const deadline = Date.now() + 10_000; received.length < count; await pause(10)) {
      assert.ok(Date.now() < deadline, `only ${received.length} of ${count} webhooks came`);
    }
    return received;
  };
  try {
    await run(`http://127.0.0.1:${server.address().port}/hook`, wait);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

each('a message brings its webhook along', (connect) => withReceiver(async (url, wait) => {
  const talk = await connect();
  const task = await talk.say('stream', { taskPushNotificationConfig: { url, token: 't-1' } });
  const received = await wait(6);
  assert.equal(received[0].body.task.id, task.id);
  assert.equal(received.at(-1).body.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
  for (const { headers } of received) assert.equal(headers['x-a2a-notification-token'], 't-1');
}));

each('push configs are made, read, listed and deleted', (connect) => withReceiver(async (url, wait) => {
  const talk = await connect();
  const { client } = talk;
  const { id: taskId } = await talk.say('order');
  const authentication = { scheme: 'Bearer', credentials: 'c-secret' };
  const made = await client.createTaskPushNotificationConfig(
    TaskPushNotificationConfig.fromJSON({ taskId, id: 'one', url, token: 't-secret', authentication }),
  );
  const which = { taskId, id: 'one' };
  const got = await client.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(which));
  const list = () => client.listTaskPushNotificationConfig(ListTaskPushNotificationConfigsRequest.fromJSON({ taskId }));
  assert.deepEqual(got, made);
  assert.deepEqual([made.id, made.url], ['one', url]);
  assert.ok(!JSON.stringify([made, got, await list()]).includes('secret'));
  await talk.say('large', { taskId });
  assert.equal((await wait(1))[0].headers.authorization, 'Bearer c-secret');
  await client.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(which));
  await assert.rejects(() => client.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(which)));
}));
