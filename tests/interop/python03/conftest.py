"""Failed checks of the shared cells are shown with their values, as those of test files are."""

import pytest

pytest.register_assert_rewrite("cells", "plain")
