"""Modules of PyTorch's that have only their names here, so that programs that import them run.

The package finds them below itself: `_stand_ins/fx` is `gradiron.fx`. One that becomes real moves up a folder.
"""
