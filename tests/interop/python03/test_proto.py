"""The proto file of A2A 0.3 that the hub shows, beside that of the SDK."""

import grpc
import pytest
from a2a.grpc import a2a_pb2
from cells import URL
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "a2a.v1.A2AService"


@pytest.fixture
def ours():
    """The file as reflection describes it."""
    with grpc.insecure_channel(URL.removeprefix("http://")) as channel:
        yield DescriptorPool(ProtoReflectionDescriptorDatabase(channel)).FindServiceByName(SERVICE).file


def fields(message):
    return {(f.name, f.json_name, f.number, f.type, f.is_repeated) for f in message.fields}


def test_every_message_has_the_fields_of_the_sdk(ours):
    theirs = a2a_pb2.DESCRIPTOR.message_types_by_name
    assert set(ours.message_types_by_name) == set(theirs)
    for name, message in theirs.items():
        assert fields(ours.message_types_by_name[name]) == fields(message), name
        shape = lambda oneofs: {(o.name, tuple(f.name for f in o.fields)) for o in oneofs}  # noqa: E731
        assert shape(ours.message_types_by_name[name].oneofs) == shape(message.oneofs), name


def test_every_value_has_its_number(ours):
    for name, values in a2a_pb2.DESCRIPTOR.enum_types_by_name.items():
        numbers = lambda enum: {(value.name, value.number) for value in enum.values}  # noqa: E731
        assert numbers(ours.enum_types_by_name[name]) == numbers(values), name


def test_every_call_takes_and_gives_what_the_sdk_does(ours):
    def shape(service):
        return {(m.name, m.input_type.full_name, m.output_type.full_name, m.server_streaming) for m in service.methods}

    assert shape(ours.services_by_name["A2AService"]) == shape(a2a_pb2.DESCRIPTOR.services_by_name["A2AService"])
