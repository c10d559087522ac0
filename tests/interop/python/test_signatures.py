"""Signed cards: the SDK verifies the hub's, and the command line those the SDK signs."""

import json

import httpx
import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from a2a.utils.signing import InvalidSignaturesError, create_agent_card_signer, create_signature_verifier
from conftest import KEY, TLS, URL
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from google.protobuf.json_format import ParseDict
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jwk import PyJWK
from program import Program

CARDS = [
    "/.well-known/agent-card.json",
    "/agents/script/.well-known/agent-card.json",
    "/agents/signed/.well-known/agent-card.json",
    "/agents/signed/extendedAgentCard",
]


def fetch(path):
    return httpx.get(URL + path, headers={"Authorization": f"Bearer {KEY}"}, verify=TLS).raise_for_status().json()


def message(card):
    return ParseDict(card, AgentCard(), ignore_unknown_fields=True)


@pytest.mark.parametrize("path", CARDS)
def test_the_sdk_verifies_the_hubs_cards(path):
    asked = []

    def key(kid, jku):
        asked.append(jku)
        return PyJWK(next(key for key in fetch("/.well-known/jwks.json")["keys"] if key["kid"] == kid))

    verify = create_signature_verifier(key, ["ES256"])
    card = message(fetch(path))
    verify(card)
    assert set(asked) == {f"{URL}/.well-known/jwks.json"}
    card.supported_interfaces[0].url = "https://elsewhere.example"
    with pytest.raises(InvalidSignaturesError):
        verify(card)


@pytest.mark.parametrize(
    ("alg", "make", "jwks"),
    [
        ("ES256", lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
        ("ES384", lambda: ec.generate_private_key(ec.SECP384R1()), ECAlgorithm),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
        ("RS256", lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
        ("PS256", lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
    ],
)
def test_the_command_line_verifies_what_the_sdk_signs(alg, make, jwks, tmp_path):
    private = make()
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    unsigned = fetch(CARDS[2])
    del unsigned["signatures"]
    signer = create_agent_card_signer(private.private_bytes(*pem), {"alg": alg, "kid": "sdk", "typ": "JOSE"})
    card = agent_card_to_dict(signer(message(unsigned)))
    key = {**json.loads(jwks.to_jwk(private.public_key())), "kid": "sdk"}
    key.pop("key_ops", None)
    (tmp_path / "key.json").write_text(json.dumps(key))
    (tmp_path / "card.json").write_text(json.dumps(card))
    (tmp_path / "changed.json").write_text(json.dumps({**card, "name": "changed"}))
    program = Program(tmp_path, "--pin", str(tmp_path / "key.json"), "-o", "json")
    told = program.ok("card", "get", "--signature", "-a", str(tmp_path / "card.json")).json()
    assert (told["signature"], told["alg"], told["kid"]) == ("verified", alg, "sdk")
    # The SDK adds members of 0.3 when it serves a card, after it was signed.
    assert {"url", "protocolVersion"} <= set(told["uncovered"])
    refused = program.run("card", "get", "-a", str(tmp_path / "changed.json"))
    assert refused.error() == "FLOTILLA_ERR_CARD_UNVERIFIED"
