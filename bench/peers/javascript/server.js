// An echo server on @a2a-js/sdk and Express: JSON-RPC at `/`, HTTP+JSON beside it, gRPC on a port of its own.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { TaskState } from '@a2a-js/sdk';
import express from 'express';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const IDLE = 3600_000;
const [http, grpc] = process.argv.slice(2);

// Does what peers/rust/src/behaviour.rs says.
class Echo {
  async execute({ taskId, contextId, userMessage }, bus) {
    const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    const update = (state) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata: undefined }));
    const artifact = (artifactId, parts, append, lastChunk) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: { artifactId, name: '', description: '', parts, metadata: undefined, extensions: [] },
          append,
          lastChunk,
          metadata: undefined,
        }),
      );
    // The SDK wants the task first, with the message in its history.
    const submitted = status(TaskState.TASK_STATE_SUBMITTED);
    const task = { id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage] };
    bus.publish(AgentEvent.task({ ...task, metadata: undefined }));
    const [word, count, delay] = String(userMessage.parts[0]?.content?.value).split(' ');
    if (word === 'idle') {
      update(TaskState.TASK_STATE_WORKING);
      await sleep(IDLE);
    } else if (word === 'chunks' && delay) {
      update(TaskState.TASK_STATE_WORKING);
      await sleep(parseInt(delay));
      for (let index = 0; index < +count; index++) {
        const part = { content: { $case: 'text', value: 'chunk' }, metadata: undefined, filename: '', mediaType: '' };
        artifact('stream', [part], index > 0, index + 1 === +count);
        // Gives the readers a turn, as an agent that waits for a model would.
        await new Promise(setImmediate);
      }
    } else {
      artifact(randomUUID(), userMessage.parts, false, true);
    }
    update(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  async cancelTask() {}
}

const at = (protocolBinding, url) => ({ protocolBinding, url, tenant: '', protocolVersion: '1.0' });
const card = {
  name: 'javascript',
  description: 'Echoes the message back.',
  version: '1.0.0',
  supportedInterfaces: [at('JSONRPC', `http://${http}/`), at('HTTP+JSON', `http://${http}`), at('GRPC', grpc)],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Echo());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };

const calls = new Server();
calls.addService(A2AService, grpcService(options));
await new Promise((resolve, reject) =>
  calls.bindAsync(grpc, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
);

const app = express();
app.disable('x-powered-by');
app.post('/', jsonRpcHandler(options));
app.use(restHandler(options));
const [host, port] = http.split(':');
// Node sets TCP_NODELAY by itself.
app.listen(+port, host, 4096);
