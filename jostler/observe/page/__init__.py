"""The status page as HTML."""

from jostler.observe.page.page import CONTENT_SECURITY_POLICY, CONTENT_TYPE, render

__all__ = ["CONTENT_SECURITY_POLICY", "CONTENT_TYPE", "render"]
