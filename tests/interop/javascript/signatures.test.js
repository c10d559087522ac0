// Signed cards: the SDK verifies the hub's, and the command line those the SDK signs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import * as jose from 'jose';
import { URL } from './talk.js';

const headers = { authorization: `Bearer ${process.env.FLOTILLA_OWNER_KEY}` };
const fetched = async (path) => (await fetch(URL + path, { headers })).json();
// The SDK tells of every signature it tries, and one in its reading is enough.
console.debug = () => {};
const SIGNED = '/agents/signed/.well-known/agent-card.json';

for (const path of ['/.well-known/agent-card.json', SIGNED, '/agents/signed/extendedAgentCard']) {
  test(`the SDK verifies the hub's card at ${path}`, async () => {
    const { keys } = await fetched('/.well-known/jwks.json');
    const verify = verifyAgentCardSignature((kid) => jose.importJWK(keys.find((key) => key.kid === kid)));
    const card = await fetched(path);
    await verify(card);
    await assert.rejects(verify({ ...card, name: 'changed' }));
  });
}

for (const alg of ['ES256', 'EdDSA', 'RS256']) {
  test(`the command line verifies what the SDK signs with ${alg}`, async (t) => {
    const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true });
    const sign = generateAgentCardSignature(privateKey, { alg, kid: 'sdk', typ: 'JOSE' });
    const { signatures, ...unsigned } = await fetched(SIGNED);
    const folder = mkdtempSync(join(tmpdir(), 'cards-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = (name, value) => {
      writeFileSync(join(folder, name), JSON.stringify(value));
      return join(folder, name);
    };
    const card = file('card.json', await sign(unsigned));
    const key = file('key.json', { ...(await jose.exportJWK(publicKey)), kid: 'sdk' });
    const args = ['card', 'get', '--signature', '-o', 'json', '-a', card, '--pin', key];
    const told = JSON.parse(execFileSync(process.env.FLOTILLA_PROGRAM, args, { env: { HOME: folder } }));
    assert.deepEqual([told.signature, told.alg, told.kid], ['verified', alg, 'sdk']);
  });
}
