// What the tests share: clients of the official JavaScript SDK over each transport, and short ways to talk.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  Artifact,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  Task,
  taskStateToJSON,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import grpc from '@grpc/grpc-js';

const env = (name) => process.env[name] ?? assert.fail(`${name} is not set: start these tests with ../run`);
export const URL = env('FLOTILLA_URL');
export const KEY = env('FLOTILLA_OWNER_KEY');
export const OTHER_KEY = env('FLOTILLA_OTHER_KEY');

const HTTP_TRANSPORTS = { 'JSONRPC': JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
const HTTP = Object.keys(HTTP_TRANSPORTS);

/** gRPC has no fetch to wrap: the key goes into the metadata of every call. */
function grpcTransport(key) {
  const withKey = (options, next) => new grpc.InterceptingCall(next(options), {
    start(metadata, listener, start) {
      if (key) metadata.set('authorization', `Bearer ${key}`);
      start(metadata, listener);
    },
  });
  return new GrpcTransportFactory({
    grpcChannelCredentials: grpc.credentials.createInsecure(),
    grpcCallOptions: { interceptors: [withKey] },
  });
}

/** A test over each transport; it is given `connect`. */
export function each(name, run, bindings = [...HTTP, 'GRPC']) {
  for (const binding of bindings) {
    test(`${name} [${binding}]`, { timeout: 30_000 }, () => run((agent, how) => connect(agent, { binding, ...how })));
  }
}

/** The same for what concerns HTTP itself. */
export const eachHttp = (name, run) => each(name, run, HTTP);

/** The card of an agent, or of the hub itself where the agent is null. */
export function resolve(agent) {
  return new DefaultAgentCardResolver().resolve(agent ? `${URL}/agents/${agent}/` : URL);
}

/**
 * Resolves an agent's card and makes a client from it. `pretend` sets capabilities that the card denies,
 * `second` is the key to try when the first one is refused.
 */
export async function connect(agent = 'script', { binding, key = KEY, second, pretend = {} }) {
  const card = await resolve(agent);
  Object.assign(card.capabilities, pretend);
  const statuses = [];
  const bearer = (key) => (key ? { Authorization: `Bearer ${key}` } : {});
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => bearer(key),
    shouldRetryWithHeaders: async (_, response) => {
      statuses.push(response.status);
      return response.status === 401 && second ? bearer(second) : undefined;
    },
  });
  const transport = binding === 'GRPC' ? grpcTransport(key) : new HTTP_TRANSPORTS[binding]({ fetchImpl });
  const factory = new ClientFactory({ transports: [transport] });
  return new Talk(await factory.createFromAgentCard(card), statuses);
}

/** An SDK client, with messages made from plain words. Results are in their JSON form, as the protocol writes them. */
class Talk {
  constructor(client, statuses) {
    this.client = client;
    this.statuses = statuses;
  }

  request(words, { messageId = randomUUID(), taskId, contextId, tenant, ...configuration }) {
    const parts = [words].flat().map((part) => (typeof part === 'string' ? { text: part } : part));
    const message = { messageId, role: 'ROLE_USER', parts, taskId, contextId };
    return SendMessageRequest.fromJSON({ message, tenant, configuration });
  }

  /** Sends without streaming, and returns the task; or the message as it is. */
  async say(words, { options, ...how } = {}) {
    const result = await this.client.sendMessage(this.request(words, how), options);
    return 'messageId' in result ? result : Task.toJSON(result);
  }

  async stream(words, how = {}) {
    return drain(this.client.sendMessageStream(this.request(words, how)));
  }

  /** Sends either way, and returns the first answer. */
  async begin(streaming, words, how) {
    return streaming ? (await this.stream(words, how))[0].value : this.say(words, how);
  }

  subscribe(id) {
    return this.client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }));
  }

  async cancel(id) {
    return Task.toJSON(await this.client.cancelTask(CancelTaskRequest.fromJSON({ id })));
  }

  async get(id, how = {}) {
    return Task.toJSON(await this.client.getTask(GetTaskRequest.fromJSON({ id, ...how })));
  }

  async list(how = {}) {
    const page = await this.client.listTasks(ListTasksRequest.fromJSON(how));
    return { ...page, tasks: page.tasks.map(Task.toJSON) };
  }

  async ids(how) {
    return (await this.list(how)).tasks.map((task) => task.id);
  }

  /** Every page of a list. */
  async pages(pageSize, how = {}) {
    const found = [await this.list({ pageSize, ...how })];
    while (found.at(-1).nextPageToken) {
      assert.ok(found.length < 1000, 'paging does not end');
      found.push(await this.list({ pageSize, pageToken: found.at(-1).nextPageToken, ...how }));
    }
    return found;
  }

  /** Polls until the task is in one of the states. */
  async reaches(id, states, milliseconds = 10_000) {
    for (const deadline = Date.now() + milliseconds; ; await pause(20)) {
      const task = await this.get(id);
      if (states.includes(task.status.state)) return task;
      assert.ok(Date.now() < deadline, `still ${task.status.state}`);
    }
  }
}

export const ENDED = ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'].map((state) => `TASK_STATE_${state}`);

/** One event of a stream: its kind, what it holds, and in one line what it says. */
export function event({ payload: { $case, value } }) {
  const says = {
    task: () => taskStateToJSON(value.status.state),
    statusUpdate: () => taskStateToJSON(value.status.state),
    artifactUpdate: () => texts(Artifact.toJSON(value.artifact).parts).join(''),
    message: () => value.parts.map((part) => part.content.value).join(''),
  };
  return { kind: $case, value, line: `${$case} ${says[$case]()}` };
}

export async function drain(stream) {
  const events = [];
  for await (const one of stream) events.push(event(one));
  return events;
}

export const lines = (events) => events.map(({ line }) => line);
export const texts = (parts) => parts.map((part) => part.text);
