"""Searches in graphs."""

from . import fuser_utils, matcher_utils, matcher_with_name_node_map_utils, source_matcher_utils

__all__ = ["fuser_utils", "matcher_utils", "matcher_with_name_node_map_utils", "source_matcher_utils"]
