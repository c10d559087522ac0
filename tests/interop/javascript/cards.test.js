// Discovery: the cards of the hub and of its agents, and how one reaches an agent from them.
import assert from 'node:assert/strict';
import test from 'node:test';
import { URL, each, resolve, texts } from './talk.js';

const interfaces = (card) => card.supportedInterfaces.map((i) => [i.protocolBinding, i.protocolVersion, i.url]);

const CHANNEL = ['urn:flotilla:binding:channel:1.0', '1.0', `${URL.replace('http', 'ws')}/ws`];

test('the root card is the hub\'s own', async () => {
  const card = await resolve(null);
  assert.equal(card.name, 'Flotilla');
  assert.deepEqual(interfaces(card), [
    ['JSONRPC', '1.0', `${URL}/a2a`],
    ['HTTP+JSON', '1.0', URL],
    ['GRPC', '1.0', URL.replace('http://', '')],
    CHANNEL,
    ['JSONRPC', '0.3', `${URL}/a2a`],
    ['HTTP+JSON', '0.3', URL],
    ['GRPC', '0.3', URL.replace('http://', '')],
  ]);
});

test('an agent\'s card tells its own', async () => {
  const card = await resolve('script');
  assert.deepEqual([card.name, card.version], ['script', '2.1.0']);
  assert.equal(card.description, 'Does what the first word of the message says.');
  assert.deepEqual(interfaces(card), [
    ['JSONRPC', '1.0', `${URL}/agents/script/a2a`],
    ['HTTP+JSON', '1.0', `${URL}/agents/script`],
    ['GRPC', '1.0', URL.replace('http://', '')],
    CHANNEL,
    ['JSONRPC', '0.3', `${URL}/agents/script/a2a`],
    ['HTTP+JSON', '0.3', `${URL}/agents/script`],
  ]);
  const [{ id, name, tags, examples }] = card.skills;
  assert.deepEqual([id, name, tags, examples], ['obey', 'Obey', ['test'], ['stream']]);
  assert.equal(card.capabilities.streaming, true);
  assert.equal(card.capabilities.pushNotifications, true);
  assert.equal(card.capabilities.extendedAgentCard, false);
  assert.equal(card.securitySchemes.bearer.scheme.value.scheme, 'Bearer');
  assert.equal(card.securitySchemes.apiKey.scheme.value.name, 'X-API-Key');
  assert.deepEqual(card.securityRequirements.map((r) => Object.keys(r.schemes)), [['bearer'], ['apiKey']]);
});

test('a card shows what differs between agents', async () => {
  assert.deepEqual((await resolve('texts')).defaultInputModes, ['text/plain']);
  assert.equal((await resolve('calm')).capabilities.streaming, false);
  const { extensions } = (await resolve('strict')).capabilities;
  assert.deepEqual(extensions.filter((e) => e.required).map((e) => e.uri), ['urn:example:ext:strict']);
});

test('no card for an unknown agent', async () => {
  await assert.rejects(resolve('nobody'), /404/);
});

each('the root is the default agent', async (connect) => {
  const { artifacts: [artifact] } = await (await connect(null)).say('to whom it may concern');
  assert.equal(artifact.name, 'echo');
  assert.deepEqual(texts(artifact.parts), ['to whom it may concern']);
});

each('a tenant names the agent at the root', async (connect) => {
  const task = await (await connect(null)).say('files', { tenant: 'script' });
  assert.equal(task.artifacts[0].artifactId, 'files');
  assert.deepEqual(await (await connect('script')).get(task.id), task);
});
