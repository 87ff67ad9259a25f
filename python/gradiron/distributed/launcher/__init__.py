"""The launcher as a library: `elastic_launch(config, function)(*arguments)`."""

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
