"""Text as somebody writes it who wants to take over whatever shows it."""

SCRIPT = "<script>document.title='taken over'</script>"
HANDLER = '"><img src=http://127.0.0.1:9/x onerror="alert(1)">'
ATTRIBUTE = '" onload="document.title=\'taken over\'" autofocus onfocus="alert(2)'
BIDI = "\u202emoor\u2066 \u200b"
ESCAPE = "\x1b]0;taken over\x07\x1b[31m"
STYLE = "</style><style>body{display:none}</style><!--"
LONG = "x" * 300_000
URL = "javascript:alert(3)"

HOSTILE = (SCRIPT, HANDLER, ATTRIBUTE, BIDI, ESCAPE, STYLE, LONG, URL, "]]>", "&lt;b&gt;", "\0", "a\r\nb", "'`${1}{{7*7}}")
