"""What an integration takes from a framework: signatures, compared with a message that says what to do."""

import inspect


def check_signature(module, framework, function, expected):
    """Fail with a clear word if the parameters of an upstream function are not those that a module was written for."""
    found = [*inspect.signature(function).parameters]
    name = f"{framework} changed {function.__qualname__}"
    assert found == expected, f"{name}: it takes {found}, not {expected}. Adapt naysay.integrations.{module}."
