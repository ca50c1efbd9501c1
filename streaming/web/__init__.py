"""HTTP: page, API answers and what guards them.

Reading order: routes, api_answers, overview; server, access and connection_limits guard them; page/ has the templates.
"""
