import pytest

pytest.register_assert_rewrite("told.testing.contract")
