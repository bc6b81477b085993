"""The status page as HTML."""

from jostler.agent.observe.page.page import CONTENT_SECURITY_POLICY, CONTENT_TYPE, render

__all__ = ["CONTENT_SECURITY_POLICY", "CONTENT_TYPE", "render"]
