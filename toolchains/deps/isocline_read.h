/* Included before isocline's sources: whoever uses it supplies the bytes of the terminal
 * (tools/arenite/line_editor.cc). It can so take part in the protocol of bracketed paste, which
 * isocline does not know, and type on behalf of the user. Without FIONREAD isocline waits for bytes
 * by select() alone. */
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#undef FIONREAD
ssize_t arn_terminal_read(int fd, void* bytes, size_t n);
int arn_terminal_select(int n, fd_set* readable, fd_set* writable, fd_set* failed,
                        struct timeval* timeout);
#define read arn_terminal_read
#define select arn_terminal_select
