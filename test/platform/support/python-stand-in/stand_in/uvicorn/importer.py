import importlib


def import_from_string(name):
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
