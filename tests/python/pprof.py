"""Reads profiles of pprof with the package protobuf, which gets their description from here, and prints each as JSON.

Usage: pprof.py FILE.pb.gz...
Ids and indexes of texts are replaced by what they name. The field numbers are those of
https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELDS = {
    "Profile": [
        ("sample_type", 1, "ValueType*"), ("sample", 2, "Sample*"), ("mapping", 3, "Mapping*"),
        ("location", 4, "Location*"), ("function", 5, "Function*"), ("string_table", 6, "string*"),
        ("drop_frames", 7, "int64"), ("keep_frames", 8, "int64"), ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"), ("period_type", 11, "ValueType"), ("period", 12, "int64"),
        ("comment", 13, "int64*"), ("default_sample_type", 14, "int64"),
    ],
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Sample": [("location_id", 1, "uint64*"), ("value", 2, "int64*"), ("label", 3, "Label*")],
    "Label": [("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")],
    "Mapping": [
        ("id", 1, "uint64"), ("memory_start", 2, "uint64"), ("memory_limit", 3, "uint64"),
        ("file_offset", 4, "uint64"), ("filename", 5, "int64"), ("build_id", 6, "int64"),
        ("has_functions", 7, "bool"), ("has_filenames", 8, "bool"), ("has_line_numbers", 9, "bool"),
        ("has_inline_frames", 10, "bool"),
    ],
    "Location": [
        ("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("address", 3, "uint64"),
        ("line", 4, "Line*"), ("is_folded", 5, "bool"),
    ],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64"), ("column", 3, "int64")],
    "Function": [
        ("id", 1, "uint64"), ("name", 2, "int64"), ("system_name", 3, "int64"),
        ("filename", 4, "int64"), ("start_line", 5, "int64"),
    ],
}


def profile_class():
    """The class of a profile."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            added = described.field.add(name=name, number=number, label=label)
            if kind in FIELDS:
                added.type, added.type_name = field.TYPE_MESSAGE, f".p.{kind}"
            else:
                added.type = getattr(field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def by_id(messages):
    """Messages by their ids, which are above 0 and differ."""
    found = {message.id: message for message in messages}
    assert 0 not in found and len(found) == len(messages)
    return found


def document(path):
    with open(path, "rb") as file:
        profile = profile_class().FromString(gzip.decompress(file.read()))
    text = profile.string_table
    assert text[0] == "" and len(set(text)) == len(text)
    mappings, functions = by_id(profile.mapping), by_id(profile.function)
    places = by_id(profile.location)

    def function(line):
        it = functions[line.function_id]
        return {
            "name": text[it.name], "system_name": text[it.system_name],
            "file": text[it.filename], "line": line.line,
        }

    def place(id):
        location = places[id]
        described = {"lines": [function(line) for line in location.line], "address": location.address}
        if location.mapping_id:
            mapping = mappings[location.mapping_id]
            assert mapping.memory_start <= location.address < mapping.memory_limit
            described["rva"] = location.address - mapping.memory_start
            described["module"] = text[mapping.filename]
            described["build_id"] = text[mapping.build_id]
            described["has_functions"] = mapping.has_functions
        return described

    types = [(text[it.type], text[it.unit]) for it in profile.sample_type]

    def sample(it):
        assert len(it.value) == len(types) and it.location_id
        return {
            "values": dict(zip((name for name, _ in types), it.value)),
            "labels": {text[label.key]: text[label.str] for label in it.label},
            "stack": [place(id) for id in it.location_id],
        }

    return {
        "types": [" ".join(it) for it in types],
        "default": text[profile.default_sample_type],
        "time_nanos": profile.time_nanos,
        "duration_nanos": profile.duration_nanos,
        "samples": [sample(it) for it in profile.sample],
    }


for path in sys.argv[1:]:
    print(json.dumps(document(path)))
