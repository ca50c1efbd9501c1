"""HTTP: page, API answers and what guards them.

Reading order: routes, api_answers, overview; server, access and connection_limits guard them; page/ has the templates.
May import: base, config, end_offsets, board, metrics, reports, history; libraries h11, jinja2, starlette, uvicorn.
"""
