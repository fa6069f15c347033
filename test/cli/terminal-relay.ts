/**
 * A pseudo-terminal in Python: `python3 -c <this> <columns> <rows> <command> …`. What the command writes comes out of stdout;
 * stdin takes JSON lines: {"keys": "…"} types, {"size": [columns, rows]} resizes. At the end stderr says how it ended.
 */
export const relay = `
import fcntl, json, os, pty, select, struct, sys, termios

def resize(columns, rows):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

def obey(line):
    order = json.loads(line)
    if 'size' in order:
        resize(*order['size'])
    if 'keys' in order:
        os.write(master, order['keys'].encode())

size = (int(sys.argv[1]), int(sys.argv[2]))
go_read, go_write = os.pipe()
child, master = pty.fork()
if child == 0:
    # The size is set before the command looks at it.
    os.read(go_read, 1)
    os.execvp(sys.argv[3], sys.argv[3:])
resize(*size)
os.write(go_write, b'.')
orders, sources = b'', [master, 0]
while True:
    ready, _, _ = select.select(sources, [], [])
    if master in ready:
        try:
            data = os.read(master, 65536)
        except OSError:
            data = b''
        if not data:
            break
        os.write(1, data)
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            sources.remove(0)
        *lines, orders = (orders + data).split(b'\\n')
        for line in lines:
            obey(line)
_, status = os.waitpid(child, 0)
signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
code = None if signal else os.WEXITSTATUS(status)
sys.stderr.write(json.dumps({'code': code, 'signal': signal}))
`;
