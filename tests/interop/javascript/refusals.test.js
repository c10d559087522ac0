// What the hub refuses, and that the SDK recognises each refusal for what it is.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  A2AError,
  ContentTypeNotSupportedError,
  ExtensionSupportRequiredError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { drain, each, eachHttp } from './talk.js';

/** Each attempt must be refused with this error. */
async function refused(error, ...attempts) {
  for (const attempt of attempts) await assert.rejects(attempt, error, String(attempt));
}

each('task not found', async (connect) => {
  const talk = await connect();
  for (const id of [randomUUID(), 'no such task']) {
    await refused(
      TaskNotFoundError,
      () => talk.get(id),
      () => talk.cancel(id),
      () => drain(talk.subscribe(id)),
      () => talk.say('hello', { taskId: id }),
      () => talk.stream('hello', { taskId: id }),
    );
  }
});

each('a direct message is no task', async (connect) => {
  const talk = await connect();
  const { contextId } = await talk.say('direct');
  const { tasks, totalSize } = await talk.list({ contextId });
  assert.deepEqual([tasks, totalSize], [[], 0]);
});

for (const word of ['files', 'fail', 'reject', 'order']) {
  each(`an ended task is closed: ${word}`, async (connect) => {
    const talk = await connect();
    let task = await talk.say(word);
    if (word === 'order') task = await talk.cancel(task.id);
    await refused(TaskNotCancelableError, () => talk.cancel(task.id));
    await refused(
      UnsupportedOperationError,
      () => talk.say('more', { taskId: task.id }),
      () => talk.stream('more', { taskId: task.id }),
      () => drain(talk.subscribe(task.id)),
    );
    assert.deepEqual(await talk.get(task.id), task);
  });
}

each('a context that is not the task\'s', async (connect) => {
  const talk = await connect();
  const [asked, elsewhere] = [await talk.say('order'), await talk.say('files')];
  await refused(RequestMalformedError, () => talk.say('large', { taskId: asked.id, contextId: elsewhere.contextId }));
  assert.deepEqual(await talk.get(asked.id), asked);
});

each('push where the card denies it', async (connect) => {
  const talk = await connect('calm', { pretend: { pushNotifications: true } });
  const { client } = talk;
  const { id: taskId } = await talk.say('hello');
  const url = 'https://example.com/hook';
  const which = { taskId, id: 'hook' };
  await refused(
    PushNotificationNotSupportedError,
    () => client.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON({ ...which, url })),
    () => client.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(which)),
    () => client.listTaskPushNotificationConfig(ListTaskPushNotificationConfigsRequest.fromJSON({ taskId })),
    () => client.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(which)),
    () => talk.say('files', { taskPushNotificationConfig: { url } }),
  );
});

each('there is no extended card', async (connect) => {
  const { client } = await connect('script', { pretend: { extendedAgentCard: true } });
  await refused(UnsupportedOperationError, () => client.getAgentCard());
});

each('streaming where the card denies it', async (connect) => {
  const talk = await connect('calm', { pretend: { streaming: true } });
  const { id } = await talk.say('hello');
  await refused(UnsupportedOperationError, () => talk.stream('hello'), () => drain(talk.subscribe(id)));
});

each('a content type the agent does not take', async (connect) => {
  const talk = await connect('texts');
  for (const part of [{ raw: 'cG5n', mediaType: 'image/png' }, { text: '# hi', mediaType: 'text/markdown' }]) {
    await refused(ContentTypeNotSupportedError, () => talk.say(['look', part]), () => talk.stream(['look', part]));
  }
  assert.ok((await talk.say({ text: 'look', mediaType: 'text/plain' })).id);
});

each('a tenant that is not there', async (connect) => {
  const root = await connect(null);
  await refused(A2AError, () => root.say('hello', { tenant: 'nobody' }));
});

eachHttp('a tenant that is not there, or not the one of the path', async (connect) => {
  const [root, echo] = [await connect(null), await connect('echo')];
  await refused(A2AError, () => root.say('hello', { tenant: 'nobody' }), () => echo.say('hello', { tenant: 'script' }));
});

each('an extension the agent requires', async (connect) => {
  const talk = await connect('strict');
  await refused(ExtensionSupportRequiredError, () => talk.say('hello'), () => talk.stream('hello'));
});

each('parameters out of range', async (connect) => {
  const talk = await connect();
  const { id } = await talk.say('files');
  await refused(
    RequestMalformedError,
    () => talk.list({ pageSize: 0 }),
    () => talk.list({ pageSize: -1 }),
    () => talk.list({ pageSize: 101 }),
    () => talk.list({ pageToken: 'nonsense' }),
    () => talk.list({ historyLength: -1 }),
    () => talk.get(id, { historyLength: -1 }),
    () => talk.say('files', { historyLength: -1 }),
    () => talk.say([]), // a message without parts
  );
});

each('a wrong key is refused', async (connect) => {
  const talk = await connect('script', { key: 'nonsense' });
  await refused(A2AError, () => talk.list(), () => talk.say('x'.repeat(1_000_000)), () => talk.stream('hello'));
});

eachHttp('a wrong key is 401', async (connect) => {
  for (const key of [null, 'nonsense', `flk_${'0'.repeat(64)}`]) {
    const talk = await connect('script', { key });
    await refused(
      A2AError,
      () => talk.get('some task'),
      () => talk.list(),
      () => talk.cancel('some task'),
      () => talk.say('hello'),
      () => talk.stream('hello'),
      () => drain(talk.subscribe('some task')),
    );
    assert.deepEqual(talk.statuses, Array(6).fill(401));
  }
});

// The refusal comes before the body has arrived, and must not cost the caller the connection.
eachHttp('a wrong key with a long message is 401 too', async (connect) => {
  const talk = await connect('script', { key: 'nonsense' });
  await refused(A2AError, ...Array(5).fill(() => talk.say('x'.repeat(1_000_000))));
  assert.deepEqual(talk.statuses, Array(5).fill(401));
});
